package loadwatcher

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// selfSigned returns a certificate for 127.0.0.1, its key and its serial number.
func selfSigned(t *testing.T) (text, key string, serial *big.Int) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	must.Succeed(t, err)
	chain, err := cert.ParseCertsPEM(certPEM)
	must.Succeed(t, err)
	return string(certPEM), string(keyPEM), chain[0].SerialNumber
}

// replace replaces a file as a whole.
func replace(t *testing.T, path, content string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path+".new", []byte(content), 0o600))
	must.Succeed(t, os.Rename(path+".new", path))
}

func TestCertificate(t *testing.T) {
	dir := t.TempDir()
	c := &certificate{certFile: filepath.Join(dir, "cert"), keyFile: filepath.Join(dir, "key")}
	if _, err := c.get(nil); err == nil {
		t.Error("no error without files")
	}
	cert1, key1, serial1 := selfSigned(t)
	cert2, key2, serial2 := selfSigned(t)
	expect := func(what string, serial *big.Int) {
		t.Helper()
		pair, err := c.get(nil)
		if err != nil || pair.Leaf.SerialNumber.Cmp(serial) != 0 {
			t.Errorf("%s: %v, %v, want the certificate %d", what, pair, err, serial)
		}
	}
	replace(t, c.certFile, cert2)
	replace(t, c.keyFile, key1)
	if _, err := c.get(nil); err == nil {
		t.Error("no error for files that do not match")
	}
	replace(t, c.certFile, cert1)
	expect("at the start", serial1)
	replace(t, c.keyFile, key2)
	expect("with the new key", serial1)
	replace(t, c.certFile, cert2)
	expect("with the new certificate", serial2)
	replace(t, c.certFile, "text")
	expect("with an invalid file", serial2)
	must.Succeed(t, os.Remove(c.keyFile))
	expect("without the key", serial2)
}

// TestRotationUnderLoad checks that no request fails while certificate, key and token are replaced one
// after the other. A client that sent the previous token has success with the next request.
func TestRotationUnderLoad(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	cert1, key1, _ := selfSigned(t)
	cert2, key2, serial2 := selfSigned(t)
	replace(t, path("cert"), cert1)
	replace(t, path("key"), key1)
	replace(t, path("token"), "one")
	replace(t, path("load.json"), fmt.Sprintf(`{"timestamp":%d,"data":{"NodeMetricsMap":{"a":{"metrics":[{"type":"CPU","value":40}]}}}}`,
		time.Now().Unix()))
	address := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	t.Setenv(asProgram, "1")
	watcher := program.Start(t, os.Args[0], "--provider=File", "--address="+path("load.json"), "--listen="+address,
		"--tls-cert-file="+path("cert"), "--tls-private-key-file="+path("key"), "--auth-token-file="+path("token"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cert1 + cert2))
	// Each request has a handshake.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	request := func(ctx context.Context) (status int, err error) {
		token, err := os.ReadFile(path("token"))
		if err != nil {
			return 0, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/watcher", nil)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		response, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	read := func(ctx context.Context) error {
		status, err := request(ctx)
		if status == http.StatusUnauthorized {
			status, err = request(ctx)
		}
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}
	eventually.True(t, "the load is not served", watcher, func(ctx context.Context) (bool, error) { return read(ctx) == nil, nil })
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var done [4]atomic.Int64
	for i := range done {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := read(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				done[i].Add(1)
			}
		})
	}
	rotate := func(name, content string) {
		replace(t, path(name), content)
		// No client, however slow, still uses the previous files.
		for i := range done {
			after := done[i].Load() + 5
			eventually.True(t, "requests do not succeed", watcher, func(context.Context) (bool, error) {
				return done[i].Load() >= after || t.Failed(), nil
			})
		}
	}
	rotate("key", key2)
	rotate("cert", cert2)
	rotate("token", "two")
	rotate("token", "three\n")
	stop()
	clients.Wait()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test reads the certificate
	must.Succeed(t, err)
	defer conn.Close()
	if serial := conn.ConnectionState().PeerCertificates[0].SerialNumber; serial.Cmp(serial2) != 0 {
		t.Errorf("certificate %d is served, want %d", serial, serial2)
	}
	if strings.Contains(watcher.String(), "panic") {
		t.Error(watcher)
	}
}
