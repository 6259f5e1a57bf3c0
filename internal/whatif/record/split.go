package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// attempts is how often a query is sent if it fails with a passing error. The attempts take at least four minutes, because an
// error at the end of a recording loses all of it. Before the first response, firstAttempts are enough.
const attempts, firstAttempts = 9, 3

// kindOfError determines how a failed query is handled.
type kindOfError int

const (
	// fatal errors stop the recording.
	fatal kindOfError = iota
	// passing errors are temporary: the query is sent again.
	passing
	// tooLarge errors mean that a query reads or returns too much: its time range is split.
	tooLarge
)

// classify returns the kind of an error.
func classify(err error) kindOfError {
	if typed, ok := errors.AsType[*load.Error](err); ok && typed.Reason == load.Invalid {
		return fatal
	}
	if asked, ok := errors.AsType[*promv1.Error](err); ok {
		switch kind := asked.Type; {
		case kind == promv1.ErrTimeout, kind == promv1.ErrCanceled, isLimit(asked.Msg),
			asked.Msg == clientError(http.StatusRequestEntityTooLarge):
			return tooLarge
		case kind == promv1.ErrBadData,
			kind == promv1.ErrExec,
			kind == promv1.ErrClient && asked.Msg != clientError(http.StatusRequestTimeout):
			return fatal
		}
		return passing
	}
	switch reason := load.ReasonOf(err); {
	case reason == load.TooLarge, reason == load.Timeout, reason == load.ServerError && isLimit(err.Error()):
		return tooLarge
	case reason == load.Denied, reason == load.Redirected, reason == load.Untrusted:
		return fatal
	}
	return passing
}

// isDial reports whether an error is that no connection could be made, other than a timeout.
func isDial(err error) bool {
	network, ok := errors.AsType[*net.OpError](err)
	return ok && network.Op == "dial" && !network.Timeout()
}

// clientError is the message of an error with an HTTP status for which the server's API defines no message.
func clientError(status int) string { return fmt.Sprintf("client error: %d", status) }

// isLimit reports whether an error is about the size or the duration of a query. Prometheus and servers with its API word them
// differently.
func isLimit(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{"too many", "exceed", "limit", "timed out", "timeout", "max-samples", "deadline", "too large"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// run calls query with a time, or with parts of it in order, which are multiples of the step except the last one, and records the
// warnings of the server. It splits the time when the server refuses the query because of its size.
func (r *recorder) run(
	ctx context.Context, what string, from, to time.Time,
	query func(ctx context.Context, from, to time.Time) (promv1.Warnings, error),
) error {
	delay := cmp.Or(r.retryDelay, time.Second)
	for n := 1; ; n++ {
		bounded, cancel := context.WithTimeout(ctx, r.config.Timeout)
		warnings, err := query(bounded, from, to)
		cancel()
		r.warned(warnings)
		if err == nil {
			r.connected = true
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch kind := classify(err); {
		case !r.connected && isDial(err):
			return fmt.Errorf("%s: no connection: check the address: %w", r.client, err)
		case kind == fatal:
			return fmt.Errorf("%s: %w", what, err)
		case kind == tooLarge && to.Sub(from) > r.config.Step:
			r.log(fmt.Sprintf("%s: %s from %s: %v: reading it in parts", what, to.Sub(from), from.Format(time.RFC3339), err))
			steps := (to.Sub(from) + r.config.Step - 1) / r.config.Step
			middle := from.Add(steps / 2 * r.config.Step)
			if err := r.run(ctx, what, from, middle, query); err != nil {
				return err
			}
			return r.run(ctx, what, middle, to, query)
		case n == attempts, !r.connected && n == firstAttempts:
			return fmt.Errorf("%s: %s from %s: failed %d times: %w", what, to.Sub(from), from.Format(time.RFC3339), n, err)
		}
		r.log(fmt.Sprintf("%s: %v: trying again in %s", what, err, delay))
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		delay *= 2
	}
}
