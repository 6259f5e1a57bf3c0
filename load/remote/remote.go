// Package remote reads load from a load-watcher service over HTTP.
package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Source is a load-watcher service.
type Source struct {
	url string
	// name is the URL without a password.
	name   string
	client *http.Client
}

// New returns the service at an address such as http://load-watcher:2020.
func New(address string) (*Source, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("address %q: want a URL like http://load-watcher.kube-system:2020", u.Redacted())
	}
	if !strings.HasSuffix(u.Path, "/watcher") {
		u = u.JoinPath("watcher")
	}
	return &Source{
		url: u.String(), name: u.Redacted(),
		client: &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: 10 * time.Second, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
			CheckRedirect: func(r *http.Request, via []*http.Request) error {
				if r.URL.Host != via[0].URL.Host {
					return fmt.Errorf("the service redirects to another host, %s", r.URL.Host)
				}
				if len(via) > 3 {
					return fmt.Errorf("the service redirects without end")
				}
				return nil
			},
		},
	}, nil
}

// String names the service in messages.
func (s *Source) String() string { return "the load watcher at " + s.name }

// Read gets the load of all nodes.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return load.Reading{}, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return load.Reading{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return load.Reading{}, fmt.Errorf("status %s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return wire.Decode(response.Body)
}
