// Package endpoint is an HTTP client for one server. It sends credentials to that server only, and
// returns an error if a response is too large, too slow or redirected to another host. Changes of token
// and certificate files take effect without a restart.
package endpoint

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Options are properties of a server that its users do not configure.
type Options struct {
	// Type is the type of metric provider, for error messages.
	Type string
	// TokenHeader is the header for the token; Authorization, as a bearer token, if empty.
	TokenHeader string
	// MaxBytes is the size of the largest response, uncompressed.
	MaxBytes int64
	// MaxValues, if not 0, is the largest number of JSON values in a response, because each takes more
	// memory than its text when it is decoded: the number of braces, brackets and commas, also in strings.
	MaxValues int64
	// ResponseTimeout is the longest time from a request to the first byte of its response, 10 s if 0.
	ResponseTimeout time.Duration
}

// Endpoint is a client for one server.
type Endpoint struct {
	// URL is the URL of the server, without user and password.
	URL    *url.URL
	client *http.Client
}

// connectTimeout is the longest time to establish a connection and, by default, from a request to the first byte of
// its response.
const connectTimeout = 10 * time.Second

// New returns the endpoint of a configuration. Files are read when they are needed: they need not exist
// yet.
func New(config metricprovider.Config, options Options) (*Endpoint, error) {
	example := metricprovider.ExampleAddress(options.Type)
	if config.Address == "" {
		return nil, fmt.Errorf("address: required: must be a URL like %s", example)
	}
	u, err := url.Parse(config.Address)
	if err != nil {
		if parse, ok := errors.AsType[*url.Error](err); ok {
			err = parse.Err // without the address, which may contain a password
		}
		if strings.HasPrefix(err.Error(), "first path segment") {
			return nil, fmt.Errorf("address: has no http:// or https://: must be a URL like %s", example)
		}
		return nil, fmt.Errorf("address: invalid URL: %w; must be a URL like %s", err, example)
	}
	if problem := metricprovider.URLProblem(u, example); problem != "" {
		return nil, fmt.Errorf("address %q: %s", u.Redacted(), problem)
	} else if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("address %q: must be a URL like %s", u.Redacted(), example)
	}
	if config.Token != "" && config.TokenFile != "" {
		return nil, errors.New("token: not allowed together with tokenFile")
	}
	if (config.CertFile == "") != (config.KeyFile == "") {
		return nil, errors.New("certFile, keyFile: must be set together")
	}
	g := &guard{config: config, options: options, user: u.User}
	public := *u
	public.User = nil
	return &Endpoint{URL: &public, client: &http.Client{Transport: g, CheckRedirect: checkRedirect}}, nil
}

// Client returns the HTTP client.
func (e *Endpoint) Client() *http.Client { return e.client }

// Do sends a request. An *load.Error is returned without the URL that http.Client adds, because callers
// add the address of the source.
func (e *Endpoint) Do(request *http.Request) (*http.Response, error) {
	response, err := e.client.Do(request)
	if loadErr, ok := errors.AsType[*load.Error](err); ok {
		return nil, loadErr
	}
	return response, err
}

// checkRedirect returns an error for redirects to another scheme or host, and for more than three.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return &load.Error{Reason: load.Redirected, Err: fmt.Errorf("redirect to another server: %s://%s", r.URL.Scheme, r.URL.Host)}
	case len(via) > 3:
		return &load.Error{Reason: load.Redirected, Err: errors.New("too many redirects")}
	}
	return nil
}

// guard is an http.RoundTripper that adds credentials to requests and checks responses.
type guard struct {
	config  metricprovider.Config
	options Options
	user    *url.Userinfo

	mu        sync.Mutex
	transport *http.Transport
	roots     []byte
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	transport, err := g.current()
	if err != nil {
		return nil, &load.Error{Reason: load.Untrusted, Err: err}
	}
	request = request.Clone(request.Context())
	if err := g.authorize(request); err != nil {
		return nil, &load.Error{Reason: load.Denied, Err: err}
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := statusError(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	response.Body = &boundedBody{body: response.Body, left: g.options.MaxBytes, limit: g.options.MaxBytes, values: g.options.MaxValues}
	return response, nil
}

// CloseIdleConnections closes idle connections.
func (g *guard) CloseIdleConnections() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.transport != nil {
		g.transport.CloseIdleConnections()
	}
}

// current returns the transport, a new transport if the certificate authorities changed.
func (g *guard) current() (*http.Transport, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var roots []byte
	if g.config.CAFile != "" {
		var err error
		if roots, err = os.ReadFile(g.config.CAFile); err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
	}
	if g.transport != nil && bytes.Equal(roots, g.roots) {
		return g.transport, nil
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: g.config.InsecureSkipVerify} //nolint:gosec // as configured
	if roots != nil {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("caFile: %s has no PEM certificate", g.config.CAFile)
		}
	}
	if g.config.CertFile != "" {
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(g.config.CertFile, g.config.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("certFile, keyFile: %w", err)
			}
			return &pair, nil
		}
	}
	if g.transport != nil {
		g.transport.CloseIdleConnections()
	}
	dialer := &net.Dialer{Timeout: connectTimeout}
	g.roots = roots
	g.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: time.Minute,
		ResponseHeaderTimeout: cmp.Or(g.options.ResponseTimeout, connectTimeout),
		MaxIdleConnsPerHost:   4, MaxResponseHeaderBytes: 1 << 20,
	}
	return g.transport, nil
}

// maxHeaders is the largest size of a file of headers.
const maxHeaders = 64 << 10

// addHeaders adds the headers of a file to a request. Errors have no values, which can be secrets.
func addHeaders(request *http.Request, path string) error {
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) > maxHeaders {
		err = fmt.Errorf("%s exceeds %d KiB", path, maxHeaders>>10)
	}
	if err != nil {
		return fmt.Errorf("headersFile: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(raw)) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || value == "" {
			return fmt.Errorf("headersFile: %s, line %d: must be a header such as X-Scope-OrgID: team", path, number)
		}
		request.Header.Set(name, value)
	}
	return nil
}

// authorize adds the headers of the configuration and the credentials to a request.
func (g *guard) authorize(request *http.Request) error {
	if g.config.HeadersFile != "" {
		if err := addHeaders(request, g.config.HeadersFile); err != nil {
			return err
		}
	}
	token := g.config.Token
	if g.config.TokenFile != "" {
		raw, err := os.ReadFile(g.config.TokenFile)
		if err != nil {
			return fmt.Errorf("tokenFile: %w", err)
		}
		token = strings.TrimSpace(string(raw))
		if token == "" {
			return fmt.Errorf("tokenFile: %s is empty", g.config.TokenFile)
		}
	}
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("the token contains spaces or control characters")
	case token != "" && g.options.TokenHeader != "":
		request.Header.Set(g.options.TokenHeader, token)
	case token != "":
		request.Header.Set("Authorization", "Bearer "+token)
	case g.user != nil:
		password, _ := g.user.Password()
		request.SetBasicAuth(g.user.Username(), password)
	}
	return nil
}

// statusError returns the error for the status of a response, nil if the caller handles the status.
func statusError(response *http.Response) error {
	var reason load.Reason
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden && response.Request.Method == http.MethodGet:
		// After a forbidden POST, the Prometheus client tries GET.
		reason = load.Denied
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		reason = load.Throttled
	case code >= 500:
		reason = load.ServerError
	default:
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	err := fmt.Errorf("status %s: %s", response.Status, strings.TrimSpace(string(body)))
	return &load.Error{Reason: reason, RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()), Err: err}
}

// retryAfter returns the wait that a Retry-After header requests, in seconds or as a date; 0 if it is
// invalid.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// boundedBody is a response body that returns an error beyond its limit.
type boundedBody struct {
	body        io.ReadCloser
	left, limit int64
	// values is the largest number of JSON values, not limited if 0; found is their number so far.
	values, found int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		return 0, &load.Error{Reason: load.TooLarge, Err: fmt.Errorf("response is larger than %d MiB", b.limit>>20)}
	}
	b.left -= int64(n)
	if b.values == 0 {
		return n, err
	}
	for _, c := range p[:n] {
		if c == ',' || c == '{' || c == '[' {
			b.found++
		}
	}
	if b.found > b.values {
		return 0, &load.Error{Reason: load.TooLarge, Err: fmt.Errorf("response has more than %d values", b.values)}
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error { return b.body.Close() }
