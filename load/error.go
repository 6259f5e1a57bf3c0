package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Reason is a kind of failure, as metrics count it.
type Reason string

// The kinds of failure.
const (
	// Unreachable: no connection to the server.
	Unreachable Reason = "unreachable"
	// Timeout: no response in time.
	Timeout Reason = "timeout"
	// Untrusted: the certificate of the server or of the client is not accepted.
	Untrusted Reason = "certificate"
	// Denied: the server denied access, or the token cannot be read.
	Denied Reason = "denied"
	// Throttled: the server limits the rate of requests.
	Throttled Reason = "throttled"
	// ServerError: the server responded with an internal error.
	ServerError Reason = "server"
	// Redirected: the server redirected to another host.
	Redirected Reason = "redirected"
	// TooLarge: the response exceeds the size limit.
	TooLarge Reason = "too_large"
	// Invalid: the response cannot be decoded, or is not the expected response.
	Invalid Reason = "invalid"
	// Empty: the response contains no node.
	Empty Reason = "empty"
	// Future: the time of the reading is ahead of the local clock.
	Future Reason = "future"
	// OutOfOrder: the reading is older than the previous one.
	OutOfOrder Reason = "out_of_order"
	// TooOld: the reading is older than the maximum age.
	TooOld Reason = "too_old"
)

// Reasons are all kinds of failure.
var Reasons = []Reason{
	Unreachable, Timeout, Untrusted, Denied, Throttled, ServerError, Redirected, TooLarge, Invalid, Empty, Future, OutOfOrder, TooOld,
}

// Error is a failed read.
type Error struct {
	// Reason is the kind of failure.
	Reason Reason
	// RetryAfter is the time to wait before the next read, as the server requested; 0 if it did not.
	RetryAfter time.Duration
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Errorf returns an error with a reason. Its cause is formatted as by fmt.Errorf.
func Errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the kind of a failure: the Reason of an *Error, or the kind derived from an error of
// the standard library.
func ReasonOf(err error) Reason {
	var typed *Error
	var unverified *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	var header tls.RecordHeaderError
	var network *net.OpError
	var lookup *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &typed):
		return typed.Reason
	case errors.As(err, &unverified), errors.As(err, &invalid), errors.As(err, &header), errors.Is(err, http.ErrSchemeMismatch):
		return Untrusted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.As(err, &network) && network.Op == "remote error": // a TLS alert: the server rejected the client certificate
		return Untrusted
	case errors.As(err, &network), errors.As(err, &lookup):
		return Unreachable
	}
	return Invalid
}

// JoinErrors returns the errors of the reads of CPU and of memory, nil if both are nil: only one if they say the same, or if their
// common reason does not depend on the query. The error that requests the longer wait is first, because it determines the reason
// and the wait.
func JoinErrors(cpu, memory error) error {
	first, second := cpu, memory
	if cpu == nil || memory != nil && retryAfter(memory) > retryAfter(cpu) {
		first, second = memory, cpu
	}
	if second == nil || first.Error() == second.Error() {
		return first
	}
	if reason := ReasonOf(first); reason == ReasonOf(second) && reason != Invalid && reason != Empty {
		return first
	}
	return fmt.Errorf("%w; %w", first, second)
}

// retryAfter returns the time to wait before the next read, as the server requested; 0 if it did not.
func retryAfter(err error) time.Duration {
	if typed, ok := errors.AsType[*Error](err); ok {
		return typed.RetryAfter
	}
	return 0
}
