package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// attempts is how often a query is sent that fails for a reason that may pass.
const attempts = 6

// retryDelay is the wait before the second attempt; each further one doubles it.
const retryDelay = time.Second

// kindOfError is what to do about a failed query.
type kindOfError int

const (
	// fatal errors stop the recording.
	fatal kindOfError = iota
	// passing errors may pass: the query is sent again.
	passing
	// tooLarge errors are those of queries that read or return too much: the time is split.
	tooLarge
)

// classify returns what to do about an error.
func classify(err error) kindOfError {
	if asked, ok := errors.AsType[*queryError](err); ok {
		switch {
		case asked.Type == "timeout", asked.Type == "canceled", asked.status == http.StatusGatewayTimeout,
			asked.status == http.StatusRequestEntityTooLarge, asked.status == http.StatusUnprocessableEntity && isLimit(asked.Message),
			asked.status == http.StatusBadRequest && isLimit(asked.Message):
			return tooLarge
		case asked.status == http.StatusBadRequest, asked.Type == "bad_data", asked.Type == "execution",
			asked.status/100 == 4 && asked.status != http.StatusRequestTimeout:
			return fatal
		}
		return passing
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fatal
	}
	if typed, ok := errors.AsType[*load.Error](err); ok && typed.Reason == load.Invalid {
		return fatal
	}
	switch reason := load.ReasonOf(err); {
	case reason == load.TooLarge, reason == load.Timeout, reason == load.ServerError && isLimit(err.Error()):
		return tooLarge
	case reason == load.Denied, reason == load.Redirected, reason == load.Untrusted:
		return fatal
	}
	return passing
}

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

// splitter runs queries over a time and splits it when the server refuses them.
type splitter struct {
	step time.Duration
	// note is called once for each query that was split or failed at first, with the reason.
	note func(string)
	// wait waits before a query is sent again; replaced by tests.
	wait func(context.Context, time.Duration) error
}

// run calls query with a time, or with parts of it in order, which are multiples of the step except the last one.
func (s *splitter) run(ctx context.Context, what string, from, to time.Time, query func(from, to time.Time) error) error {
	err := query(from, to)
	delay := retryDelay
	for n := 1; err != nil; n++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch kind := classify(err); {
		case kind == fatal:
			return fmt.Errorf("%s: %w", what, err)
		case kind == tooLarge && to.Sub(from) > s.step:
			s.note(fmt.Sprintf("%s: %s from %s: %v: reading it in parts", what, to.Sub(from), from.Format(time.RFC3339), err))
			steps := (to.Sub(from) + s.step - 1) / s.step
			middle := from.Add(steps / 2 * s.step)
			if err := s.run(ctx, what, from, middle, query); err != nil {
				return err
			}
			return s.run(ctx, what, middle, to, query)
		case n == attempts:
			return fmt.Errorf("%s: %s from %s: failed %d times: %w", what, to.Sub(from), from.Format(time.RFC3339), attempts, err)
		}
		s.note(fmt.Sprintf("%s: %v: trying again in %s", what, err, delay))
		if err := s.wait(ctx, delay); err != nil {
			return err
		}
		delay *= 2
		err = query(from, to)
	}
	return nil
}

// sleep waits until a time has passed or the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
