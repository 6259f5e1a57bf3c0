package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"
)

// Reason is a kind of failure, as metrics count it.
type Reason string

// The kinds of failure.
const (
	// Unreachable: no connection.
	Unreachable Reason = "unreachable"
	// Timeout: no answer in time.
	Timeout Reason = "timeout"
	// Untrusted: the certificate of the server, or of the client, is not good.
	Untrusted Reason = "certificate"
	// Denied: the server does not let us in, or the token cannot be read.
	Denied Reason = "denied"
	// Throttled: the server asks for fewer reads.
	Throttled Reason = "throttled"
	// ServerError: the server says that it failed.
	ServerError Reason = "server"
	// Redirected: the server points to another host.
	Redirected Reason = "redirected"
	// TooLarge: the answer is larger than anything that makes sense.
	TooLarge Reason = "too_large"
	// Invalid: the answer is not what was asked for.
	Invalid Reason = "invalid"
	// Empty: the answer has no node in it.
	Empty Reason = "empty"
	// Future: the reading is ahead of this clock.
	Future Reason = "future"
	// OutOfOrder: the reading is older than the one before.
	OutOfOrder Reason = "out_of_order"
	// TooOld: the reading is older than may be used.
	TooOld Reason = "too_old"
)

// Reasons are all kinds of failure.
var Reasons = []Reason{Unreachable, Timeout, Untrusted, Denied, Throttled, ServerError, Redirected, TooLarge, Invalid, Empty, Future, OutOfOrder, TooOld}

// Error is a failure to read, of a kind.
type Error struct {
	Reason Reason
	// RetryAfter is how long the server asks to be left alone, 0 if it does not.
	RetryAfter time.Duration
	Err        error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the kind of a failure. Where no *Error says it, it is told
// from the errors of the standard library.
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
	case errors.As(err, &unverified), errors.As(err, &invalid), errors.As(err, &header):
		return Untrusted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.As(err, &network) && network.Op == "remote error": // a TLS alert: the server does not like our certificate
		return Untrusted
	case errors.As(err, &network), errors.As(err, &lookup):
		return Unreachable
	}
	return Invalid
}

// retryAfter returns how long the server asked to be left alone.
func retryAfter(err error) time.Duration {
	if typed, ok := errors.AsType[*Error](err); ok {
		return typed.RetryAfter
	}
	return 0
}
