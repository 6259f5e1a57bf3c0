package setup

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// roundTrip answers requests as a function does.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRetryDial(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, tc := range map[string]struct {
		err  error
		body io.Reader
		want int // number of tries; the third try succeeds
	}{
		"refused":                  {refused, nil, 3},
		"refused, with a body":     {refused, strings.NewReader("once"), 1},
		"cut off":                  {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, nil, 1},
		"not a matter of reaching": {errors.New("certificate"), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			p := retryDial{roundTrip(func(*http.Request) (*http.Response, error) {
				if tries++; tries < 3 {
					return nil, tc.err
				}
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}), time.Microsecond}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://plimsoll.invalid", tc.body)
			must.Succeed(t, err)
			response, err := p.RoundTrip(request)
			if err == nil {
				response.Body.Close()
			}
			if tries != tc.want || (err == nil) != (tc.want == 3) {
				t.Errorf("%d tries, %v; want %d tries", tries, err, tc.want)
			}
		})
	}
	t.Run("given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := retryDial{roundTrip(func(*http.Request) (*http.Response, error) {
			cancel()
			return nil, refused
		}), time.Hour}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://plimsoll.invalid", nil)
		must.Succeed(t, err)
		if response, err := p.RoundTrip(request); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v, %v", response, err)
		}
	})
}
