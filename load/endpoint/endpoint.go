// Package endpoint is an HTTP client for one server. It sends credentials to that server only, and
// returns an error if a response is too large, too slow or redirected to another host. Changes of token
// and certificate files take effect without a restart.
package endpoint

import (
	"bytes"
	"cmp"
	"context"
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

// Endpoint is a client for one server, and the http.RoundTripper of its Client: it adds credentials to requests and checks responses.
type Endpoint struct {
	// URL is the URL of the server, without user and password.
	URL *url.URL
	// Client sends requests through the endpoint.
	Client *http.Client

	config  metricprovider.Config
	options Options
	user    *url.Userinfo

	mu        sync.Mutex
	transport *http.Transport
	roots     []byte
}

// connectTimeout is the longest time to establish a connection and, by default, from a request to the first byte of
// its response.
const connectTimeout = 10 * time.Second

// New returns the endpoint of a configuration. Files are read when they are needed: they need not exist
// yet.
func New(config metricprovider.Config, options Options) (*Endpoint, error) {
	example, problem := metricprovider.ExampleAddresses[options.Type], ""
	u, err := url.Parse(config.Address)
	if parse, ok := errors.AsType[*url.Error](err); ok {
		err = parse.Err // without the address, which may contain a password
	} else {
		problem = metricprovider.URLProblem(u, example)
	}
	switch {
	case config.Address == "":
		return nil, fmt.Errorf("address: required: must be a URL like %s", example)
	case err != nil:
		return nil, fmt.Errorf("address: invalid URL: %w; must be a URL like %s", err, example)
	case problem != "":
		return nil, fmt.Errorf("address %q: %s", u.Redacted(), problem)
	case config.Token != "" && config.TokenFile != "":
		return nil, errors.New("token: not allowed together with tokenFile")
	case (config.CertFile == "") != (config.KeyFile == ""):
		return nil, errors.New("certFile, keyFile: must be set together")
	}
	e := &Endpoint{URL: u, config: config, options: options, user: u.User}
	u.User = nil
	e.Client = &http.Client{Transport: e, CheckRedirect: checkRedirect}
	return e, nil
}

// Get requests a URL with headers. A status other than 200 and 304 is an error. Errors do not have the URL, because callers add the
// address of the source.
func (e *Endpoint) Get(ctx context.Context, address string, headers http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header = headers
	response, err := e.Client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotModified {
		return nil, statusError(response, load.Invalid)
	}
	return response, nil
}

// checkRedirect returns an error for redirects to another scheme or host, and for more than three.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return load.Errorf(load.Redirected, "redirect to another server: %s://%s", r.URL.Scheme, r.URL.Host)
	case len(via) > 3:
		return load.Errorf(load.Redirected, "too many redirects")
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (e *Endpoint) RoundTrip(request *http.Request) (*http.Response, error) {
	transport, err := e.current()
	if err != nil {
		return nil, &load.Error{Reason: load.Untrusted, Err: err}
	}
	request = request.Clone(request.Context())
	if err := e.authorize(request); err != nil {
		return nil, &load.Error{Reason: load.Denied, Err: err}
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if reason := refusal(response); reason != "" {
		return nil, statusError(response, reason)
	}
	response.Body = &boundedBody{ReadCloser: response.Body, options: &e.options}
	return response, nil
}

// current returns the transport, a new transport if the certificate authorities changed.
func (e *Endpoint) current() (*http.Transport, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var roots []byte
	if e.config.CAFile != "" {
		var err error
		if roots, err = os.ReadFile(e.config.CAFile); err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
	}
	if e.transport != nil && bytes.Equal(roots, e.roots) {
		return e.transport, nil
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: e.config.InsecureSkipVerify} //nolint:gosec // as configured
	if roots != nil {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("caFile: %s has no PEM certificate", e.config.CAFile)
		}
	}
	if e.config.CertFile != "" {
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(e.config.CertFile, e.config.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("certFile, keyFile: %w", err)
			}
			return &pair, nil
		}
	}
	if e.transport != nil {
		e.transport.CloseIdleConnections()
	}
	dialer := &net.Dialer{Timeout: connectTimeout}
	e.roots = roots
	e.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: time.Minute,
		ResponseHeaderTimeout: cmp.Or(e.options.ResponseTimeout, connectTimeout),
		MaxIdleConnsPerHost:   4, MaxResponseHeaderBytes: 1 << 20,
	}
	return e.transport, nil
}

// maxHeaders is the largest size of a file of headers.
const maxHeaders = 64 << 10

// addHeaders adds the headers of a file. Errors have no values, which can be secrets.
func addHeaders(headers http.Header, path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("headersFile: %w", err)
	}
	if len(raw) > maxHeaders {
		return fmt.Errorf("headersFile: %s exceeds %d KiB", path, maxHeaders>>10)
	}
	for i, line := range strings.Split(string(raw), "\n") {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch {
		case name == "" && !found: // an empty line
		case value == "" || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("headersFile: %s, line %d: must be a header such as X-Scope-OrgID: team", path, i+1)
		default:
			headers.Set(name, value)
		}
	}
	return nil
}

// authorize adds the headers of the configuration and the credentials to a request.
func (e *Endpoint) authorize(request *http.Request) error {
	if e.config.HeadersFile != "" {
		if err := addHeaders(request.Header, e.config.HeadersFile); err != nil {
			return err
		}
	}
	token := e.config.Token
	if e.config.TokenFile != "" {
		raw, err := os.ReadFile(e.config.TokenFile)
		if err != nil {
			return fmt.Errorf("tokenFile: %w", err)
		}
		token = strings.TrimSpace(string(raw))
		if token == "" {
			return fmt.Errorf("tokenFile: %s is empty", e.config.TokenFile)
		}
	}
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("the token contains spaces or control characters")
	case token != "" && e.options.TokenHeader != "":
		request.Header.Set(e.options.TokenHeader, token)
	case token != "":
		request.Header.Set("Authorization", "Bearer "+token)
	case e.user != nil:
		password, _ := e.user.Password()
		request.SetBasicAuth(e.user.Username(), password)
	}
	return nil
}

// refusal returns the kind of failure that a status means, empty if the caller handles the status.
func refusal(response *http.Response) load.Reason {
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden && response.Request.Method == http.MethodGet:
		// After a forbidden POST, the Prometheus client tries GET.
		return load.Denied
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		return load.Throttled
	case code >= 500:
		return load.ServerError
	}
	return ""
}

// statusError closes a response and returns its status and the beginning of its body as an error.
func statusError(response *http.Response, reason load.Reason) error {
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	err := load.Errorf(reason, "status %s: %s", response.Status, strings.TrimSpace(string(body)))
	err.RetryAfter = retryAfter(response.Header.Get("Retry-After"), time.Now())
	return err
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

// boundedBody is a response body that returns an error beyond the limits of the options.
type boundedBody struct {
	io.ReadCloser
	options *Options
	// bytes and values have been read.
	bytes, values int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.options.MaxBytes-b.bytes+1)])
	b.bytes += int64(n)
	for _, mark := range []byte(",{[") {
		b.values += int64(bytes.Count(p[:n], []byte{mark}))
	}
	switch limits := b.options; {
	case b.bytes > limits.MaxBytes:
		return 0, load.Errorf(load.TooLarge, "response is larger than %d MiB", limits.MaxBytes>>20)
	case limits.MaxValues > 0 && b.values > limits.MaxValues:
		return 0, load.Errorf(load.TooLarge, "response has more than %d values", limits.MaxValues)
	}
	return n, err
}
