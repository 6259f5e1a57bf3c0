package scheduler

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestLoadWatcherWithTLSAndToken checks that load-watcher serves clients with the token over TLS, among
// them the metric provider Service.
func TestLoadWatcherWithTLSAndToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	cert, key := selfSigned(t)
	certFile, keyFile, token := file("cert", cert), file("key", key), file("token", "secret")
	feed := file("load.json", fmt.Sprintf(`{"timestamp":%d,"window":{"duration":"15m"},"source":"Test",`+
		`"data":{"NodeMetricsMap":{"a":{"metrics":[{"type":"CPU","operator":"AVG","value":40}]}}}}`, time.Now().Unix()))
	port, watcher := testcluster.StartLoadWatcher(t, "--provider=File", "--address="+feed, "--tls-cert-file="+certFile,
		"--tls-private-key-file="+keyFile, "--auth-token-file="+token)
	address := fmt.Sprintf("https://127.0.0.1:%d", port)
	read := func(config metricprovider.Config) error {
		config.Address = address
		source, err := provider.NewWatcher(config)
		must.Succeed(t, err)
		_, err = source.Read(t.Context())
		return err
	}
	eventually.True(t, "the load is not served", watcher, func(context.Context) (bool, error) {
		return read(metricprovider.Config{CAFile: certFile, TokenFile: token}) == nil, nil
	})
	if err := read(metricprovider.Config{CAFile: certFile}); load.ReasonOf(err) != load.Denied {
		t.Errorf("without the token: %v", err)
	}
	if err := read(metricprovider.Config{CAFile: certFile, Token: "guess"}); load.ReasonOf(err) != load.Denied {
		t.Errorf("with a wrong token: %v", err)
	}
	if err := read(metricprovider.Config{TokenFile: token}); load.ReasonOf(err) != load.Untrusted {
		t.Errorf("without the authority: %v", err)
	}
	if out, _ := testcluster.MustPlimsoll(t, "load", "top", "--load-source="+testcluster.WriteFile(t, fmt.Sprintf(
		"{type: Service, address: %q, caFile: %q, tokenFile: %q}", address, certFile, token))); !strings.Contains(out, "40.0") {
		t.Error(out)
	}
	_, stderr, exitCode := testcluster.RunPlimsoll(t, "load", "top", "--load-source="+testcluster.WriteFile(t, fmt.Sprintf(
		"{type: Service, address: %q, caFile: %q}", address, certFile)))
	if exitCode != 1 || !strings.Contains(stderr, "bearer token required") {
		t.Errorf("exit code %d\n%s", exitCode, stderr)
	}
	watcher.Stop(t)
}

// selfSigned returns a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	defer server.Close()
	pair := server.TLS.Certificates[0]
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must.Succeed(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func TestLoadWatcherBadInput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--nothing"}, "unknown flag: --nothing: the command is load-watcher [flags] (see load-watcher --help)"},
		{[]string{"--provider=Prometheus"}, `--address: required: must be a URL like http://prometheus.monitoring:9090`},
		{[]string{"--provider=Prometheus", "--address=p:9090"}, `--address "p:9090": must be a URL like http://prometheus.monitoring:9090`},
		{[]string{"--provider=File", "--address=/a", "--step=1m"}, "--step: not used by type File: only by Prometheus, SignalFx"},
		{
			[]string{"--kubeconfig=/nonexistent"},
			"provider KubernetesMetricsServer: --kubeconfig: stat /nonexistent: no such file or directory",
		},
		{[]string{"--poll-interval=1ms"}, "--poll-interval: invalid value 1ms: must be at least 1s"},
		{[]string{"--max-age=1s"}, "--max-age: invalid value 1s: must be at least --poll-interval, 30s"},
		{[]string{"--tls-cert-file=a"}, "--tls-cert-file, --tls-private-key-file: must be set together"},
		{[]string{"--provider=File", "--address=/a", "--auth-token-file=/nonexistent"}, "open /nonexistent: no such file or directory"},
		{
			[]string{"--provider=File", "--address=/a", "--listen=127.0.0.1:99999"},
			`--listen: invalid value "127.0.0.1:99999": must be HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:7654`,
		},
		{[]string{"now"}, `unexpected argument "now": load-watcher has flags only, with one value each, without spaces`},
	} {
		cmd := exec.CommandContext(t.Context(), program.Path(t, "load-watcher"), tc.args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME=/nonexistent")
		_, stderr, exitCode := program.RunCommand(t, cmd)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if exitCode != 2 || len(lines) != 1 || lines[0] != "load-watcher: "+tc.want {
			t.Errorf("%v: exit code %d\n%s\nwant\n%s", tc.args, exitCode, stderr, tc.want)
		}
	}
}
