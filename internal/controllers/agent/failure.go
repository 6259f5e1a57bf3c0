package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
)

// Reasons of failed reports in metrics and logs.
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

// reportError is the error of a failed report. Its message states what to do.
type reportError struct {
	reason string
	err    error
}

func (e *reportError) Error() string { return e.err.Error() }
func (e *reportError) Unwrap() error { return e.err }

// reasonOf returns the reason of an error, the first of several, empty for nil.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	if failure, ok := errors.AsType[*reportError](err); ok {
		return failure.reason
	}
	return reasonOther
}

// explain converts an error of the hub to a reportError. The next request uses a new connection.
func (h *Hub) explain(err error, kind string) error {
	if err == nil {
		return nil
	}
	h.connections.CloseAll() // they may be broken or use credentials that are no longer valid
	failed := func(reason, format string, args ...any) error {
		return &reportError{reason, fmt.Errorf("%s of cluster %s: %w", kind, h.cluster, fmt.Errorf(format, args...))}
	}
	status, answered := errors.AsType[*apierrors.StatusError](err)
	alert, rejected := errors.AsType[tls.AlertError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, isPath := errors.AsType[*os.PathError](err)
	_, isInvalid := errors.AsType[*reportError](err)
	switch {
	case errors.Is(err, setup.ErrNotLeader):
		return failed(reasonMember, "the agent does not hold its lease in the cluster: %w", err)
	case apierrors.IsUnauthorized(err):
		return failed(reasonUnauthorized,
			"the hub rejected the credentials in %s: they may have expired or been revoked; "+
				"replace them in the file, a restart is not necessary: %w", h.path, err)
	case apierrors.IsForbidden(err):
		return failed(reasonForbidden,
			"the hub denied access: check that %q is the name of the cluster on the hub and "+
				"that examples/placement/agent-hub-rbac.yaml was applied for it: %w", h.cluster, err)
	case apierrors.IsNotFound(err):
		return failed(reasonMissing,
			"not found on the hub: check that %q is the name of the cluster there, that the cluster is accepted, "+
				"and that the CRD of %s is installed: %w", h.cluster, kind, err)
	case answered && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err)):
		return failed(reasonRefused, "the hub rejected the object: %w", err)
	case answered:
		return failed(reasonUnreachable, "the hub returned status %d: %w", status.ErrStatus.Code, err)
	case isPath, isInvalid:
		return failed(reasonKubeconfig, "reading the kubeconfig of the hub or a file that it refers to: %w", err)
	case rejected:
		return failed(reasonCertificate,
			"the hub rejected the client certificate in %s (%s): replace it in the file, a restart is not necessary: %w",
			h.path, alert, err)
	case untrusted:
		return failed(reasonCertificate, "the certificate of the hub is not trusted by %s: %w", h.path, err)
	}
	return failed(reasonUnreachable, "the hub is unreachable: %w", err)
}
