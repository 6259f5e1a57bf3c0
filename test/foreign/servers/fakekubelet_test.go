//go:build foreign

package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
)

// resourceMetrics is the response of a kubelet to /metrics/resource, each value with the time of its
// measurement.
const resourceMetrics = `# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="a",namespace="default",pod="%[4]s"} %[5]v %[3]d
container_cpu_usage_seconds_total{container="b",namespace="default",pod="%[4]s"} %[6]v %[3]d
# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="a",namespace="default",pod="%[4]s"} %[7]v %[3]d
container_memory_working_set_bytes{container="b",namespace="default",pod="%[4]s"} %[8]v %[3]d
# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total %[1]v %[3]d
# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes %[2]v %[3]d
# HELP resource_scrape_error [STABLE] 1 if there was an error while getting container metrics, 0 otherwise
# TYPE resource_scrape_error gauge
resource_scrape_error 0
`

// fakeKubelet serves the resource metrics of a node with configurable usage. Its pod has two containers: the first uses a
// quarter of the CPU and half of the memory of the node, the second a half and a quarter.
type fakeKubelet struct {
	server *httptest.Server
	pod    string

	mu            sync.Mutex
	cores, memory float64
	used          float64 // core-seconds until at
	at            time.Time
}

// startKubelet starts a kubelet of a node with a pod in namespace default. The node uses the given cores and bytes.
func startKubelet(t *testing.T, pod string, cores, memory float64) *fakeKubelet {
	t.Helper()
	// metrics-server ignores counters that are 0.
	k := &fakeKubelet{pod: pod, cores: cores, memory: memory, used: 1000, at: time.Now().Truncate(time.Millisecond)}
	k.server = httptest.NewTLSServer(k)
	t.Cleanup(k.stop)
	return k
}

func (k *fakeKubelet) stop() { k.server.Close() }

func (k *fakeKubelet) port() int32 {
	return int32(k.server.Listener.Addr().(*net.TCPAddr).Port)
}

// use changes the usage since the last scrape, so that the rate between two scrapes equals the old or the new
// usage, not a mean of both.
func (k *fakeKubelet) use(cores, memory float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cores, k.memory = cores, memory
}

// ServeHTTP implements http.Handler.
func (k *fakeKubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics/resource" {
		http.NotFound(w, r)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// Times in the response are in milliseconds. The counter has the same time, so that the rate is exact.
	now := time.Now().Truncate(time.Millisecond)
	k.used += k.cores * now.Sub(k.at).Seconds()
	k.at = now
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintf(w, resourceMetrics, k.used, k.memory, now.UnixMilli(), k.pod, k.used/4, k.used/2, k.memory/2, k.memory/4)
}

// startAggregatingPlane returns a control plane of its own kind: its API server has the client certificate of the aggregation layer, which
// servers of APIServices expect.
func startAggregatingPlane(t *testing.T, crds ...string) (*controlplane.ControlPlane, *rest.Config, *kubernetes.Clientset) {
	t.Helper()
	cp, config := plane.Start(t, controlplane.Options{APIServerArgs: frontProxy(t)}, crds...)
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	return cp, config, client
}

// frontProxy creates the self-signed client certificate of the aggregation layer, and returns the flags of kube-apiserver for it.
func frontProxy(t *testing.T) []string {
	t.Helper()
	const name = "front-proxy-client"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	must.Succeed(t, err)
	signed, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	must.Succeed(t, err)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "front-proxy.crt"), filepath.Join(dir, "front-proxy.key")
	must.Succeed(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed.Raw}), 0o600))
	must.Succeed(t, os.WriteFile(keyFile, keyPEM, 0o600))
	return []string{
		"--requestheader-client-ca-file=" + certFile,
		"--requestheader-allowed-names=" + name,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + certFile,
		"--proxy-client-key-file=" + keyFile,
	}
}
