package setup

import (
	"errors"
	"net"
	"net/http"
	"time"
)

// dialInterval is the time between two attempts to connect to the API server.
const dialInterval = time.Second

// retryDial repeats requests that failed because the API server could not be
// reached, until the context of the request ends. Informers use it: their own
// backoff grows to a minute, so they would notice late that the API server is back.
type retryDial struct {
	next     http.RoundTripper
	interval time.Duration
}

// RoundTrip implements http.RoundTripper. A request with a body is sent once.
func (r retryDial) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := r.next.RoundTrip(request)
		unreachable, ok := errors.AsType[*net.OpError](err)
		if !ok || unreachable.Op != "dial" || request.Body != nil {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return nil, err
		case <-time.After(r.interval):
		}
	}
}
