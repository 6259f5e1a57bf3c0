package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// cable is a TCP connection to the API server that can be cut.
type cable struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

// startCable returns a cable to the hub, and a kubeconfig that leads through it.
func (h *hub) startCable(t *testing.T) (*cable, string) {
	t.Helper()
	target, err := url.Parse(h.Address())
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{address: fmt.Sprintf("127.0.0.1:%d", freePort(t)), target: target.Host}
	c.mend(t)
	t.Cleanup(c.cut)
	config, err := clientcmd.LoadFromFile(h.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + c.address
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return c, path
}

// mend makes the cable carry connections.
func (c *cable) mend(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.listener = listener
	c.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.join(listener, conn)
		}
	}()
}

// join carries one connection.
func (c *cable) join(listener net.Listener, near net.Conn) {
	far, err := net.Dial("tcp", c.target)
	if err != nil {
		_ = near.Close()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != listener {
		_, _ = near.Close(), far.Close()
		return // cut meanwhile
	}
	c.conns = append(c.conns, near, far)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = way[0].Close(), way[1].Close()
		}()
	}
}

// cut ends all connections and lets no others come.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil {
		_ = c.listener.Close()
	}
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.listener, c.conns = nil, nil
}

// witness notes every change of objects of a kind.
type witness struct {
	mu   sync.Mutex
	seen []watch.Event
	at   []time.Time
}

// watchAll starts to note the changes of all objects of a kind.
func (h *hub) watchAll(t *testing.T, kind schema.GroupVersionKind) *witness {
	t.Helper()
	w := &witness{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := h.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	changes, err := h.client.Watch(t.Context(), list, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(changes.Stop)
	go func() {
		for event := range changes.ResultChan() {
			w.mu.Lock()
			w.seen, w.at = append(w.seen, event), append(w.at, time.Now())
			w.mu.Unlock()
		}
		if t.Context().Err() == nil {
			t.Errorf("the watch of %s ended", kind.Kind)
		}
	}()
	return w
}

// changes returns what was seen: "DELETED general-rate".
func (w *witness) changes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, event := range w.seen {
		if object, ok := event.Object.(client.Object); ok {
			out = append(out, fmt.Sprintf("%s %s", event.Type, object.GetName()))
		} else {
			out = append(out, fmt.Sprintf("%s %v", event.Type, event.Object))
		}
	}
	return out
}

// keepController runs the controller as a kubelet does until the end of the test:
// when it ends it is started again, after 10 s, 20 s and so on.
func (h *hub) keepController(t *testing.T, args ...string) (said *output, restarts *atomic.Int64) {
	t.Helper()
	said, restarts = &output{}, &atomic.Int64{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for pause := 10 * time.Second; ; pause = min(2*pause, 5*time.Minute) {
			cmd := h.controllerCommand(ctx, args...)
			cmd.Stderr = said
			err := cmd.Run()
			if ctx.Err() != nil {
				return
			}
			restarts.Add(1)
			fmt.Fprintf(said, "the controller ended with %v\n", err)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return said, restarts
}

// inPool makes a policy one of the nodes with a label.
func inPool(pool string) func(*v1alpha1.ResourceSlackSpec) {
	return func(s *v1alpha1.ResourceSlackSpec) { s.Pool.NodeSelector = map[string]string{"pool": pool} }
}

// fill makes so many pods of (1, 2Gi) run on the nodes named like this one.
func (h *hub) fill(t *testing.T, prefix string, pods, nodes int, node string) {
	t.Helper()
	for i := range pods {
		h.create(t, runningPod(fmt.Sprint(prefix, i), fmt.Sprint(node, i%nodes), "1", "2Gi"))
	}
}

// The API server is away for a while, and much changes behind the controller's
// back. It deletes nothing that is wanted, and has made up for it within 30 s.
// PLIMSOLL_OUTAGE=5m is the length of the outage that counts.
func TestSlackOutage(t *testing.T) {
	t.Parallel()
	length := 20 * time.Second
	if text, ok := os.LookupEnv("PLIMSOLL_OUTAGE"); ok {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, elect := range map[string]bool{"alone": false, "elected": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHub(t, buffersCRD(t))
			for i := range 5 {
				h.create(t, readyNode(fmt.Sprint("node-", i), "16", "64Gi", map[string]string{"pool": "general"}))
			}
			h.create(t, readyNode("other-0", "16", "64Gi", map[string]string{"pool": "other"}))
			h.fill(t, "pod-", 40, 4, "node-")
			h.fill(t, "doomed-", 10, 1, "other-")
			policy := policyOf("general", "10%", inPool("general"))
			h.create(t, policy)
			h.create(t, policyOf("doomed", "0", inPool("other")))
			cable, kubeconfig := h.startCable(t)
			said, restarts := h.keepController(t, "--kubeconfig="+kubeconfig, fmt.Sprint("--leader-elect=", elect))
			// 10 % of (40, 80Gi): (1, 2Gi) for the biggest pod, 3 more like it.
			h.awaitBuffers(t, said, map[string]string{"doomed-head": "1 x 1 2Gi", "general-head": "1 x 1 2Gi", "general-rate": "3 x 1 2Gi"})
			h.awaitCondition(t, said, "general", v1alpha1.ConditionReady, "Held")
			buffers := h.watchAll(t, slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
			templates := h.watchAll(t, v1.SchemeGroupVersion.WithKind("PodTemplate"))

			// Some of it reaches the controller, which cannot act on it any more.
			h.fill(t, "more-", 20, 4, "node-")
			cable.cut()
			if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
				t.Fatal(err)
			}
			policy.Spec.MinRate = "20%"
			if err := h.client.Update(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			for _, gone := range []client.Object{readyNode("node-4", "1", "1", nil), policyOf("doomed", "", nil)} {
				if err := h.client.Delete(t.Context(), gone); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-t.Context().Done():
			case <-time.After(length):
			}
			if seen := append(buffers.changes(), templates.changes()...); len(seen) > 0 {
				t.Errorf("written while the API server was away: %v", seen)
			}

			cable.mend(t)
			back := time.Now()
			// 20 % of (60, 120Gi).
			h.awaitBuffers(t, said, map[string]string{"general-head": "1 x 1 2Gi", "general-rate": "11 x 1 2Gi"})
			took := time.Since(back)
			h.awaitCondition(t, said, "general", v1alpha1.ConditionReady, "Provisioning")
			t.Logf("after %s away it took %.1f s; the controller was started again %d times; buffers: %v, templates: %v",
				length, took.Seconds(), restarts.Load(), buffers.changes(), templates.changes())
			if took > 30*time.Second {
				t.Errorf("it took %s, want at most 30s\n%s", took, said)
			}
			if !elect && restarts.Load() > 0 {
				t.Errorf("the controller ended, which has no lease to lose\n%s", said)
			}
			for _, w := range []*witness{buffers, templates} {
				if slices.ContainsFunc(w.changes(), func(change string) bool { return strings.HasPrefix(change, "DELETED general-") }) {
					t.Errorf("something was deleted that is wanted: %v", w.changes())
				}
			}
		})
	}
}
