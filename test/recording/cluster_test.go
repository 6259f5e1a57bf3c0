package recording

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
)

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// history is what happened to a pod: its last state, and when it was deleted, zero if it was not.
type history struct {
	pod     *v1.Pod
	deleted time.Time
}

// cluster is a control plane whose pods are watched, and a kubelet that serves the container metrics of the running pods.
type cluster struct {
	*controlplane.ControlPlane
	client *kubernetes.Clientset

	mu   sync.Mutex
	pods map[types.UID]*history
}

// startCluster starts a control plane and watches its pods.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	cp, config := plane.Start(t, controlplane.Options{})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{ControlPlane: cp, client: client, pods: map[types.UID]*history{}}
	events, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() {
			c.observe(event)
		}
	}()
	return c
}

// observe records an event.
func (c *cluster) observe(event watch.Event) {
	pod, ok := event.Object.(*v1.Pod)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.pods[pod.UID]
	if h == nil {
		h = &history{}
		c.pods[pod.UID] = h
	}
	h.pod = pod
	if event.Type == watch.Deleted {
		h.deleted = time.Now()
	}
}

// histories returns the histories of the pods until now.
func (c *cluster) histories() map[types.UID]history {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[types.UID]history{}
	for uid, h := range c.pods {
		out[uid] = *h
	}
	return out
}

// bind binds a pod as a scheduler does.
func (c *cluster) bind(t *testing.T, name, node string) {
	t.Helper()
	err := c.client.CoreV1().Pods("default").Bind(t.Context(), &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Target: v1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// run creates a pod and binds it unless the node is empty.
func (c *cluster) run(t *testing.T, pod *v1.Pod, node string) {
	t.Helper()
	if _, err := c.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if node != "" {
		c.bind(t, pod.Name, node)
	}
}

// remove deletes a pod and waits until it is gone.
func (c *cluster) remove(t *testing.T, name string) {
	t.Helper()
	if err := c.client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "pod "+name+" is not deleted", nil, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err != nil, nil
	})
}

// resetAt is the age in seconds at which the counters of a pod start again at 0, as when its container is restarted.
const resetAt = 20

// cores returns the usage of CPU of a pod at an age in seconds: twice as much from the 30th second on.
func cores(pod *v1.Pod, age float64) float64 {
	base := 0.1 + 0.01*float64(len(pod.Name))
	if age >= 30 {
		return 2 * base
	}
	return base
}

// used returns the core-seconds that the counter of a pod shows at an age.
func used(pod *v1.Pod, age float64) float64 {
	from := 0.0
	if age >= resetAt {
		from = resetAt
	}
	before := max(min(age, 30)-from, 0)
	return cores(pod, 0)*before + cores(pod, 30)*max(age-30, 0)
}

// memoryBytes returns the memory of a pod at an age: 64 MiB and 1 MiB more each second.
func memoryBytes(age float64) float64 { return (64 + math.Floor(age)) * (1 << 20) }

// running returns the time for which a pod ran until a time, and false if it does not run.
func (h history) running(at time.Time) (age float64, ok bool) {
	if h.pod.Status.StartTime == nil || h.pod.Status.Phase != v1.PodRunning || !h.deleted.IsZero() {
		return 0, false
	}
	return at.Sub(h.pod.Status.StartTime.Time).Seconds(), true
}

// startCadvisor serves the container metrics of all running pods as kubelets do: each has a container, its pause container and
// the pod as a whole.
func (c *cluster) startCadvisor(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now, pods := time.Now(), c.histories()
		write := func(metric, kind string, value func(pod *v1.Pod, age float64) float64) {
			fmt.Fprintf(w, "# TYPE %s %s\n", metric, kind)
			for h := range maps.Values(pods) {
				age, ok := h.running(now)
				if !ok {
					continue
				}
				for container, part := range map[string]float64{"main": 1, "": 1.01, "POD": 0.01} {
					fmt.Fprintf(w, "%s{namespace=%q,pod=%q,container=%q,id=%q} %v\n", metric, h.pod.Namespace, h.pod.Name, container,
						"/kubepods/"+container, part*value(h.pod, age))
				}
			}
		}
		write("container_cpu_usage_seconds_total", "counter", used)
		write("container_memory_working_set_bytes", "gauge", func(_ *v1.Pod, age float64) float64 { return memoryBytes(age) })
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
