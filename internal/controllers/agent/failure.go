package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reasons why reports fail, as metrics and logs name them.
const (
	reasonMember       = "member"
	reasonKubeconfig   = "kubeconfig"
	reasonUnauthorized = "unauthorized"
	reasonForbidden    = "forbidden"
	reasonMissing      = "missing"
	reasonCertificate  = "certificate"
	reasonRefused      = "refused"
	reasonUnreachable  = "unreachable"
	reasonOther        = "other"
)

// reportError is why a report failed, in words that say what to do.
type reportError struct {
	reason string
	err    error
}

func (e *reportError) Error() string { return e.err.Error() }
func (e *reportError) Unwrap() error { return e.err }

// ownedError is that somebody else has written what was to be written.
type ownedError struct{ err error }

func (e *ownedError) Error() string { return e.err.Error() }
func (e *ownedError) Unwrap() error { return e.err }

// reasonOf returns the reason of an error, the first of several; none of nil.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	if failure, ok := errors.AsType[*reportError](err); ok {
		return failure.reason
	}
	return reasonOther
}

// explain says what an error of the hub means for a report of a kind, and what
// to do. After it, the next request is made on a new connection.
func (p *place) explain(err error, kind string) error {
	if err == nil {
		return nil
	}
	p.hub.disconnect()
	failed := func(reason, format string, args ...any) error {
		return &reportError{reason, fmt.Errorf("%s of cluster %s: %w", kind, p.cluster, fmt.Errorf(format, args...))}
	}
	status, answered := errors.AsType[*apierrors.StatusError](err)
	alert, refused := errors.AsType[tls.AlertError](err)
	_, isPath := errors.AsType[*os.PathError](err)
	switch {
	case apierrors.IsUnauthorized(err):
		return failed(reasonUnauthorized, "the hub does not accept the credentials in %s, which have expired or been revoked: put new ones there, they are read at once: %w", p.hub.path, err)
	case apierrors.IsForbidden(err):
		return failed(reasonForbidden, "the hub does not allow it: is %q the cluster's name there, and has examples/placement/agent-hub-rbac.yaml been applied for it? %w", p.cluster, err)
	case apierrors.IsNotFound(err):
		return failed(reasonMissing, "the hub has no place for it: is %q the cluster's name there, has the cluster been accepted, and are the CRDs of Open Cluster Management installed? %w", p.cluster, err)
	case answered && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err)):
		return failed(reasonRefused, "the hub refuses it: %w", err)
	case answered:
		return failed(reasonUnreachable, "the hub fails with status %d: %w", status.ErrStatus.Code, err)
	case isPath:
		return failed(reasonKubeconfig, "the kubeconfig of the hub or a file that it names cannot be read: %w", err)
	case refused:
		return failed(reasonCertificate, "the hub does not accept the client certificate in %s (%s): put a new one there, it is read at once: %w", p.hub.path, alert, err)
	case isCertificate(err):
		return failed(reasonCertificate, "the hub's certificate is not one that %s trusts: %w", p.hub.path, err)
	}
	return failed(reasonUnreachable, "the hub cannot be reached: %w", err)
}

// isCertificate reports whether the server's certificate was found wanting.
func isCertificate(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	return verification || authority
}
