// Package endpoint is an HTTP client for one server whose answers are not
// trusted more than needed: credentials go to that server and nowhere else,
// and an answer that is too large, too slow or from elsewhere is an error, not
// a problem. Tokens and certificates are read from their files as they change.
package endpoint

import (
	"bytes"
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
}

// Endpoint is a server.
type Endpoint struct {
	// URL is where it is, without a user and password.
	URL    *url.URL
	client *http.Client
}

// connectTimeout bounds the time to a connection, and from a request to the
// beginning of its answer.
const connectTimeout = 10 * time.Second

// New returns the server that the configuration describes. Files are read when
// they are needed, so that one that comes later is no error.
func New(config metricprovider.Config, options Options) (*Endpoint, error) {
	example := metricprovider.ExampleAddress(options.Type)
	u, err := url.Parse(config.Address)
	if err != nil {
		if parse, ok := errors.AsType[*url.Error](err); ok {
			err = parse.Err // without the address, which may have a password
		}
		return nil, fmt.Errorf("address: not a URL: %w; want one like %s", err, example)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("address %q: want a URL like %s", u.Redacted(), example)
	}
	if config.Token != "" && config.TokenFile != "" {
		return nil, errors.New("token: may not be given together with tokenFile")
	}
	if (config.CertFile == "") != (config.KeyFile == "") {
		return nil, errors.New("certFile, keyFile: want both or none")
	}
	g := &guard{config: config, options: options, user: u.User}
	public := *u
	public.User = nil
	return &Endpoint{URL: &public, client: &http.Client{Transport: g, CheckRedirect: checkRedirect}}, nil
}

// Client returns the client for requests to the server.
func (e *Endpoint) Client() *http.Client { return e.client }

// Do sends a request. A refusal of the server is returned without the address
// around it, which whoever asks puts there anyway.
func (e *Endpoint) Do(request *http.Request) (*http.Response, error) {
	response, err := e.client.Do(request)
	if refused, ok := errors.AsType[*load.Error](err); ok {
		return nil, refused
	}
	return response, err
}

// CloseIdle closes connections that are not in use.
func (e *Endpoint) CloseIdle() { e.client.CloseIdleConnections() }

// checkRedirect follows the server where it stays the same one: scheme and
// host.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return &load.Error{Reason: load.Redirected, Err: fmt.Errorf("the server redirects to another one, %s://%s", r.URL.Scheme, r.URL.Host)}
	case len(via) > 3:
		return &load.Error{Reason: load.Redirected, Err: errors.New("the server redirects without end")}
	}
	return nil
}

// guard sends requests with credentials and looks at what comes back.
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
	if err := refusal(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	response.Body = &bounded{body: response.Body, left: g.options.MaxBytes, limit: g.options.MaxBytes}
	return response, nil
}

// CloseIdleConnections closes connections that are not in use.
func (g *guard) CloseIdleConnections() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.transport != nil {
		g.transport.CloseIdleConnections()
	}
}

// current returns the transport, made anew if the trusted certificates changed.
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
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: g.config.InsecureSkipVerify} //nolint:gosec // the user's choice
	if roots != nil {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("caFile: %s has no PEM certificate", g.config.CAFile)
		}
	}
	if g.config.CertFile != "" {
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
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
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: settings, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: connectTimeout, IdleConnTimeout: time.Minute,
		MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: 1 << 20,
	}
	return g.transport, nil
}

// authorize puts the credentials into a request.
func (g *guard) authorize(request *http.Request) error {
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
		return errors.New("the token has blanks or control characters in it")
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

// refusal returns the error that the status of an answer means, nil if whoever
// asked is to look at it.
func refusal(response *http.Response) error {
	var reason load.Reason
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden && response.Request.Method == http.MethodGet:
		// Whoever may not POST a query may still GET it, which the client tries.
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

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// bounded is a body that ends in an error when it is too large.
type bounded struct {
	body        io.ReadCloser
	left, limit int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		return 0, &load.Error{Reason: load.TooLarge, Err: fmt.Errorf("the answer is larger than %d MiB", b.limit>>20)}
	}
	b.left -= int64(n)
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error { return b.body.Close() }
