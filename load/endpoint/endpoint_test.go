package endpoint

import (
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const maxBytes = 1 << 20

var testOptions = Options{Type: metricprovider.Prometheus, MaxBytes: maxBytes}

// get sends one request.
func get(t *testing.T, config metricprovider.Config) (string, error) {
	t.Helper()
	e, err := New(config, testOptions)
	must.Succeed(t, err)
	return ask(t, e)
}

func ask(t *testing.T, e *Endpoint) (string, error) {
	t.Helper()
	response, err := e.Get(t.Context(), e.URL.String(), nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestNewErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
	}{
		"no address": {metricprovider.Config{}, `address: required: must be a URL like http://prometheus.monitoring:9090`},
		"no scheme": {
			metricprovider.Config{Address: "server:9090"},
			`address "server:9090": must be a URL like http://prometheus.monitoring:9090`,
		},
		"another scheme": {
			metricprovider.Config{Address: "ftp://server"},
			`address "ftp://server": must be a URL like http://prometheus.monitoring:9090`,
		},
		"password": {
			metricprovider.Config{Address: "ftp://me:secret@server"},
			`address "ftp://me:xxxxx@server": must be a URL like http://prometheus.monitoring:9090`,
		},
		"invalid URL": {
			metricprovider.Config{Address: "http://me:secret@server name"},
			`address: invalid URL: invalid character " " in host name; must be a URL like http://prometheus.monitoring:9090`,
		},
		"a query": {
			metricprovider.Config{Address: "http://server?a=b"},
			`address "http://server?a=b": must be a URL like http://prometheus.monitoring:9090`,
		},
		"a port": {
			metricprovider.Config{Address: "http://server:99999"},
			`address "http://server:99999": must be a URL like http://prometheus.monitoring:9090, with a port up to 65535`,
		},
		"two tokens": {
			metricprovider.Config{Address: "http://server", Token: "a", TokenFile: "b"},
			"token: not allowed together with tokenFile",
		},
		"certificate only": {metricprovider.Config{Address: "http://server", CertFile: "a"}, "certFile, keyFile: must be set together"},
		"key only":         {metricprovider.Config{Address: "http://server", KeyFile: "a"}, "certFile, keyFile: must be set together"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(tc.config, testOptions); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprint(w, r.Header.Get("Authorization"), "|", r.Header.Get("X-Token"), "|", user, "|", password)
	})
	withUser := strings.Replace(server.URL, "http://", "http://me:secret@", 1)
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
	}{
		"none":                {metricprovider.Config{Address: server.URL}, "||"},
		"a token":             {metricprovider.Config{Address: server.URL, Token: "abc"}, "Bearer abc||"},
		"from a file":         {metricprovider.Config{Address: server.URL, TokenFile: write(t, " abc\n")}, "Bearer abc||"},
		"a user":              {metricprovider.Config{Address: withUser}, "|me|secret"},
		"a token over a user": {metricprovider.Config{Address: withUser, Token: "abc"}, "Bearer abc||"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := get(t, tc.config); err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
	t.Run("in a header", func(t *testing.T) {
		options := testOptions
		options.TokenHeader = "X-Token"
		e, err := New(metricprovider.Config{Address: server.URL, Token: "abc"}, options)
		must.Succeed(t, err)
		if got, err := ask(t, e); err != nil || !strings.Contains(got, "|abc|") {
			t.Errorf("%q, %v; want %q", got, err, "|abc|")
		}
	})
}

// TestTokenIsRotated checks that the token file is read for every request.
func TestTokenIsRotated(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	path := write(t, "old")
	e, err := New(metricprovider.Config{Address: server.URL, TokenFile: path}, testOptions)
	must.Succeed(t, err)
	for _, token := range []string{"old", "new"} {
		must.Succeed(t, os.WriteFile(path, []byte(token), 0o600))
		if got, err := ask(t, e); err != nil || got != "Bearer "+token {
			t.Errorf("%q, %v", got, err)
		}
	}
	for content, want := range map[string]string{"": "is empty", " \n": "is empty", "a\nb": "spaces or control characters"} {
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := ask(t, e); load.ReasonOf(err) != load.Denied || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("token %q: %v, want %s", content, err, want)
		}
	}
	// Without the file no request is sent.
	must.Succeed(t, os.Remove(path))
	if _, err := ask(t, e); load.ReasonOf(err) != load.Denied || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestRedirects checks that neither requests nor tokens are sent to another host, port or scheme.
func TestRedirects(t *testing.T) {
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the other server gets a request") })
	to := ""
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/new" {
			fmt.Fprint(w, r.Header.Get("Authorization"))
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	for target, want := range map[string]string{
		elsewhere.URL: "redirect to another server: " + elsewhere.URL,
		strings.Replace(server.URL, "http:", "https:", 1): "redirect to another server: https:",
		"/again": "too many redirects",
	} {
		to = target
		_, err := get(t, metricprovider.Config{Address: server.URL, Token: "secret"})
		if load.ReasonOf(err) != load.Redirected || !strings.Contains(err.Error(), want) {
			t.Errorf("to %s: %v, want %s", target, err, want)
		}
	}
	to = "/new"
	if got, err := get(t, metricprovider.Config{Address: server.URL, Token: "secret"}); err != nil || got != "Bearer secret" {
		t.Errorf("on the same server: %q, %v", got, err)
	}
}

// TestStatusErrors checks the reasons and the waits of statuses, and that errors quote the first 200 bytes of a response.
func TestStatusErrors(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, tc := range map[string]struct {
		status     int
		retryAfter string
		want       load.Reason
		wantAfter  time.Duration
	}{
		"unauthorized":        {401, "", load.Denied, 0},
		"forbidden":           {403, "", load.Denied, 0},
		"throttled":           {429, "", load.Throttled, 0},
		"throttled, seconds":  {429, "30", load.Throttled, 30 * time.Second},
		"throttled, date":     {429, soon, load.Throttled, time.Hour},
		"throttled, past":     {429, "Mon, 02 Jan 2006 15:04:05 GMT", load.Throttled, 0},
		"throttled, invalid":  {429, "soon", load.Throttled, 0},
		"throttled, negative": {429, "-5", load.Throttled, 0},
		"unavailable, retry":  {503, "120", load.Throttled, 2 * time.Minute},
		"unavailable":         {503, "", load.ServerError, 0},
		"internal error":      {500, "", load.ServerError, 0},
		"not found":           {404, "", load.Invalid, 0},
		"created":             {201, "", load.Invalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tc.retryAfter)
				http.Error(w, strings.Repeat("a", 300), tc.status)
			})
			_, err := get(t, metricprovider.Config{Address: server.URL})
			var refused *load.Error
			if !errors.As(err, &refused) || refused.Reason != tc.want || !strings.HasSuffix(err.Error(), ": "+strings.Repeat("a", 200)) {
				t.Fatalf("%v (%s), want %s", err, load.ReasonOf(err), tc.want)
			}
			if d := tc.wantAfter - refused.RetryAfter; d < 0 || d > 10*time.Second {
				t.Errorf("retry after %s, want %s", refused.RetryAfter, tc.wantAfter)
			}
		})
	}
}

// TestLargeResponses checks that responses are read up to the limit only, compressed ones included.
func TestLargeResponses(t *testing.T) {
	zeros := make([]byte, 1<<20)
	var sent int
	for name, handler := range map[string]http.HandlerFunc{
		"a gigabyte": func(w http.ResponseWriter, _ *http.Request) {
			for sent = 0; sent < 1<<30; sent += len(zeros) {
				if _, err := w.Write(zeros); err != nil {
					return
				}
			}
		},
		"a gigabyte in a megabyte": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packer := gzip.NewWriter(w)
			for sent = 0; sent < 1<<30; sent += len(zeros) {
				if _, err := packer.Write(zeros); err != nil {
					return
				}
			}
			_ = packer.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				handler(w, r)
			})
			_, err := get(t, metricprovider.Config{Address: server.URL})
			if load.ReasonOf(err) != load.TooLarge || err.Error() != "response is larger than 1 MiB" {
				t.Error(err)
			}
			server.CloseClientConnections()
			<-done
		})
	}
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(zeros) })
	if got, err := get(t, metricprovider.Config{Address: server.URL}); err != nil || len(got) != maxBytes {
		t.Errorf("exactly the limit: %d bytes, %v", len(got), err)
	}
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "test"}, key)
	must.Succeed(t, err)
	raw, err := cert.EncodeCertificates(ca)
	must.Succeed(t, err)
	return &authority{ca, key, string(raw)}
}

// issue returns a certificate that expires at the given time, and its files.
func (a *authority) issue(t *testing.T, until time.Time) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "me"}, NotBefore: until.Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	must.Succeed(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	must.Succeed(t, err)
	pair, err = tls.X509KeyPair(certPEM, keyPEM)
	must.Succeed(t, err)
	return pair, write(t, string(certPEM)), write(t, string(keyPEM))
}

func TestCertificates(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	good, _, _ := ours.issue(t, time.Now().Add(time.Hour))
	expired, _, _ := ours.issue(t, time.Now().Add(-time.Minute))
	_, certFile, keyFile := ours.issue(t, time.Now().Add(time.Hour))
	_, unknownCert, unknownKey := theirs.issue(t, time.Now().Add(time.Hour))
	clients := x509.NewCertPool()
	clients.AddCert(ours.cert)
	start := func(pair tls.Certificate, clientAuth tls.ClientAuthType) string {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "in", r.Header.Get("Authorization"))
			if len(r.TLS.PeerCertificates) > 0 {
				fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName)
			}
		}))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: clientAuth, ClientCAs: clients}
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL
	}
	open, old, closed := start(good, tls.NoClientCert), start(expired, tls.NoClientCert), start(good, tls.RequireAndVerifyClientCert)
	ca := write(t, ours.pem)
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
		err    string
	}{
		"trusted":                   {metricprovider.Config{Address: open, CAFile: ca}, "in", ""},
		"not trusted":               {metricprovider.Config{Address: open}, "", "certificate signed by unknown authority"},
		"not trusted, with a token": {metricprovider.Config{Address: open, Token: "a"}, "", "certificate signed by unknown authority"},
		"another authority": {
			metricprovider.Config{Address: open, CAFile: write(t, theirs.pem)}, "", "certificate signed by unknown authority",
		},
		"not verified":               {metricprovider.Config{Address: open, InsecureSkipVerify: true}, "in", ""},
		"not verified, with a token": {metricprovider.Config{Address: open, InsecureSkipVerify: true, Token: "a"}, "inBearer a", ""},
		"expired":                    {metricprovider.Config{Address: old, CAFile: ca}, "", "certificate has expired"},
		"expired, not verified":      {metricprovider.Config{Address: old, InsecureSkipVerify: true}, "in", ""},
		"client certificate": {
			metricprovider.Config{Address: closed, CAFile: ca, CertFile: certFile, KeyFile: keyFile}, "inme", "",
		},
		"no client certificate": {metricprovider.Config{Address: closed, CAFile: ca}, "", "certificate required"},
		"unknown client certificate": {
			metricprovider.Config{Address: closed, CAFile: ca, CertFile: unknownCert, KeyFile: unknownKey}, "", "tls: ",
		},
		"missing client certificate": {
			metricprovider.Config{Address: closed, CAFile: ca, CertFile: "/nowhere", KeyFile: keyFile},
			"",
			"certFile, keyFile: open /nowhere",
		},
		"missing CA file":               {metricprovider.Config{Address: open, CAFile: "/nowhere"}, "", "caFile: open /nowhere"},
		"CA file without a certificate": {metricprovider.Config{Address: open, CAFile: write(t, "nothing")}, "", "has no PEM certificate"},
		"plain HTTP to a server with TLS": {
			metricprovider.Config{Address: strings.Replace(open, "https", "http", 1)}, "", "HTTP request to an HTTPS server",
		},
		"TLS to a server with plain HTTP": {
			metricprovider.Config{Address: strings.Replace(serve(t, func(http.ResponseWriter, *http.Request) {}).URL, "http", "https", 1)},
			"", "server gave HTTP response to HTTPS client",
		},
		"no server":    {metricprovider.Config{Address: "http://127.0.0.1:1"}, "", "connection refused"},
		"unknown host": {metricprovider.Config{Address: "http://nowhere.invalid"}, "", "nowhere.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := get(t, tc.config)
			if !strings.Contains(got, tc.want) || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, tc.want, tc.err)
			}
			if strings.Contains(tc.err, "certificate") && load.ReasonOf(err) != load.Untrusted {
				t.Errorf("reason %s", load.ReasonOf(err))
			}
		})
	}
	t.Run("the CA file changes", func(t *testing.T) {
		path := write(t, theirs.pem)
		e, err := New(metricprovider.Config{Address: open, CAFile: path}, testOptions)
		must.Succeed(t, err)
		if _, err := ask(t, e); err == nil {
			t.Error("an unknown authority is trusted")
		}
		must.Succeed(t, os.WriteFile(path, []byte(ours.pem), 0o600))
		if _, err := ask(t, e); err != nil {
			t.Error(err)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, header := range []string{"", "1", "-1", "99999999999999", "Mon, 02 Jan 2006 15:04:05 GMT", "x"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if after := retryAfter(header, time.Unix(0, 0)); after < 0 {
			t.Error(after)
		}
	})
}

// TestEchoedSecrets asks servers that return the credentials of requests, in each place of a response, so that each part of the answer may be
// cut within them: no error and no body has them.
func TestEchoedSecrets(t *testing.T) {
	const secret = "hush-hush-0123456789"
	offset := 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		echo := strings.Repeat("x", offset) + fmt.Sprint(r.Header.Get("Authorization"), r.Header.Get("X-Key"), strings.Repeat("y", 300))
		switch r.URL.Path {
		case "/status":
			w.WriteHeader(http.StatusBadGateway)
		case "/redirect":
			w.Header().Set("Location", "http://"+secret+"/")
			w.WriteHeader(http.StatusFound)
		case "/garbage":
			connection, _, err := w.(http.Hijacker).Hijack()
			must.Succeed(t, err)
			fmt.Fprintf(connection, "%s\r\n\r\n", echo)
			connection.Close()
			return
		}
		fmt.Fprint(w, echo)
	})
	withUser := strings.Replace(server.URL, "http://", "http://me:"+secret+"@", 1)
	for _, path := range []string{"/", "/status", "/redirect", "/garbage"} {
		for name, config := range map[string]metricprovider.Config{
			"token": {Address: server.URL, Token: secret}, "password": {Address: withUser},
			"header": {Address: server.URL, HeadersFile: write(t, "X-Key: "+secret+"\nX-Scope-OrgID: team-in-europe\n")},
		} {
			config.Address += path
			for offset = 0; offset < 1100; offset += 97 {
				got, err := get(t, config)
				all := fmt.Sprint(got, err)
				if strings.Contains(all, "hush") || strings.Contains(all, "bWU6aHVza") || path == "/" && !strings.Contains(all, "yyy") {
					t.Fatalf("%s, %s, %d: %s", name, path, offset, all)
				}
			}
		}
	}
}

// TestHeaders checks that requests have the headers of a file, also after the file changes, and that errors do not have the values.
func TestHeaders(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Scope-OrgID"), r.Header.Get("X-Other"))
	})
	path := write(t, "X-Scope-OrgID: team\n\nX-Other: a: b\n")
	config := metricprovider.Config{Address: server.URL, HeadersFile: path}
	if got, err := get(t, config); err != nil || got != "teama: b" {
		t.Errorf("%q, %v", got, err)
	}
	for content, want := range map[string]string{
		"hush-hush":                              "line 1: must be a header such as X-Scope-OrgID: team",
		"X-A: b\nX B: hush-hush":                 "line 2: must be a header",
		"X-A: hush\x00hush":                      "line 1: must be a header",
		"X-A:":                                   "line 1: must be a header",
		strings.Repeat("X-A: hush-hush\n", 9000): "found more than 65536 bytes",
	} {
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := get(t, config); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%.40q: %v, want %s", content, err, want)
		}
	}
}
