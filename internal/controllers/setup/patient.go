package setup

import (
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// connectAgain is the time between two tries to reach the API server.
const connectAgain = time.Second

// patient is for those who wait longer with every failure: informers, who look
// only once a minute in the end, and would learn late that the API server is
// back. While it cannot be reached their requests wait here instead, for as long
// as they may.
type patient struct {
	next  http.RoundTripper
	again time.Duration
}

// patientClient returns a client that waits for the API server.
func patientClient(config *rest.Config) (*http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Transport = patient{client.Transport, connectAgain}
	return client, nil
}

// RoundTrip makes a request as soon as there is somebody to hear it.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := p.next.RoundTrip(request)
		unreachable, ok := errors.AsType[*net.OpError](err)
		if !ok || unreachable.Op != "dial" || request.Body != nil {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return nil, err
		case <-time.After(p.again):
		}
	}
}
