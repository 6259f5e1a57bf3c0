// Package endpoint is an HTTP client for one server. It sends credentials to that server only, and
// returns an error if a response is too large, too slow or redirected to another host. Changes of token
// and certificate files take effect without a restart.
package endpoint

import (
	"bufio"
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/files"
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
	given := request.Header
	request = request.Clone(request.Context())
	if err := e.authorize(request); err != nil {
		return nil, &load.Error{Reason: load.Denied, Err: err}
	}
	secrets := e.secrets(request.Header, given)
	response, err := transport.RoundTrip(request)
	if err != nil {
		if text := []byte(err.Error()); mask(text, secrets) {
			err = errors.New(string(text))
		}
		return nil, err
	}
	for _, text := range append(response.Header["Location"], response.Status) {
		if mask([]byte(text), secrets) {
			response.Header.Del("Location")
			response.Status = strconv.Itoa(response.StatusCode)
		}
	}
	response.Body = &boundedBody{
		Closer: response.Body, in: bufio.NewReaderSize(response.Body, readAhead), secrets: secrets, options: &e.options,
	}
	if reason := refusal(response); reason != "" {
		return nil, statusError(response, reason)
	}
	return response, nil
}

// current returns the transport, a new transport if the certificate authorities changed.
func (e *Endpoint) current() (*http.Transport, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var roots []byte
	if e.config.CAFile != "" {
		var err error
		if roots, err = files.Read(e.config.CAFile, files.MaxSecret); err != nil {
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
			certificate, certErr := files.Read(e.config.CertFile, files.MaxSecret)
			key, keyErr := files.Read(e.config.KeyFile, files.MaxSecret)
			pair, err := tls.X509KeyPair(certificate, key)
			if err = cmp.Or(certErr, keyErr, err); err != nil {
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
	raw, err := files.Read(path, maxHeaders)
	if err != nil {
		return fmt.Errorf("headersFile: %w", err)
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
		raw, err := files.Read(e.config.TokenFile, maxHeaders)
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

// minSecret is the length of the shortest secret that is masked in responses, and readAhead the size of the buffer of a response, which is
// larger than all secrets of a request.
const (
	minSecret = 8
	readAhead = 256 << 10
)

// secrets returns the credentials that authorize added to the headers of a request: what is between spaces in them, but the name of a
// tenant, and the password.
func (e *Endpoint) secrets(headers, given http.Header) (secrets [][]byte) {
	password, _ := e.user.Password()
	texts := []string{password}
	for name, values := range headers {
		if name != "X-Scope-Orgid" && !slices.Equal(values, given[name]) {
			texts = append(texts, strings.Fields(strings.Join(values, " "))...)
		}
	}
	for _, text := range texts {
		if len(text) >= minSecret {
			secrets = append(secrets, []byte(text))
		}
	}
	return secrets
}

// mask replaces secrets in a text by asterisks, and reports whether there were any.
func mask(text []byte, secrets [][]byte) (found bool) {
	for _, secret := range secrets {
		for rest := text; ; found = true {
			i := bytes.Index(rest, secret)
			if i < 0 {
				break
			}
			copy(rest[i:], bytes.Repeat([]byte("*"), len(secret)))
			rest = rest[i+len(secret):]
		}
	}
	return found
}

// boundedBody is a response body that returns an error beyond the limits of the options, and masks the secrets of the request, which the
// server may return: errors show parts of responses.
type boundedBody struct {
	io.Closer
	in      *bufio.Reader
	secrets [][]byte
	options *Options
	// bytes and values have been read.
	bytes, values int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	most, longest := min(int64(len(p)), b.options.MaxBytes-b.bytes+1, readAhead/2), 0
	for _, secret := range b.secrets {
		longest = max(longest, len(secret)-1)
	}
	ahead, err := b.in.Peek(int(most) + longest) // a secret may begin in what is returned
	mask(ahead, b.secrets)
	n := copy(p[:most], ahead)
	if _, discard := b.in.Discard(n); discard != nil || n < len(ahead) {
		err = discard
	}
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
