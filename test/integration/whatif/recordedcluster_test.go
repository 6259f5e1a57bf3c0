package whatif

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

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
	must.Succeed(t, err)
	c := &cluster{ControlPlane: cp, client: client, pods: map[types.UID]*history{}}
	events, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
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
	must.Succeed(t, err)
}

// run creates a pod and binds it unless the node is empty.
func (c *cluster) run(t *testing.T, pod *v1.Pod, node string) {
	t.Helper()
	testcluster.Create(t, c.client.CoreV1().Pods("default"), pod)
	if node != "" {
		c.bind(t, pod.Name, node)
	}
}

// remove deletes a pod and waits until it is gone.
func (c *cluster) remove(t *testing.T, name string) {
	t.Helper()
	must.Succeed(t, c.client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
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

const (
	// interval is the time between two scrapes.
	interval = time.Second
	// rateWindow contains several scrapes.
	rateWindow = 6 * time.Second
)

// newNode returns a node.
func newNode(name, cpu, zone string, taints ...v1.Taint) *v1.Node {
	node := schedtest.Node(name, "cpu", cpu, "memory", "16Gi", "pods", "110", "example.com/gpu", "2")
	node.Labels, node.Spec.Taints = map[string]string{v1.LabelTopologyZone: zone, "pool": "general"}, taints
	return node
}

// template returns the spec of a pod with requests, limits and constraints.
func template() v1.PodSpec {
	limits := schedtest.Amounts("cpu", "1500m", "memory", "3Gi", "example.com/gpu", "1")
	requests := schedtest.Amounts("cpu", "250m", "memory", "1Gi", "example.com/gpu", "1")
	return v1.PodSpec{
		Containers: []v1.Container{
			{Name: "main", Image: "registry.example/main:1", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}},
			{Name: "sidecar", Image: "registry.example/sidecar:2"},
		},
		InitContainers: []v1.Container{
			{
				Name: "init", Image: "registry.example/init:3",
				Resources: v1.ResourceRequirements{Requests: schedtest.Amounts("cpu", "1", "memory", "64Mi")},
			},
		},
		NodeSelector: map[string]string{"pool": "general"},
		Tolerations: []v1.Toleration{
			{Key: "example.com/dedicated", Operator: v1.TolerationOpEqual, Value: "a", Effect: v1.TaintEffectNoSchedule},
		},
	}
}

// newPod returns a pod.
func newPod(name string, change ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "test"}}, Spec: template()}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// live lets the cluster live for a minute: pods and nodes come and go. It returns when it has deleted node-b.
func live(t *testing.T, c *cluster) (deleted time.Time) {
	t.Helper()
	begin := time.Now()
	at := func(seconds int) {
		t.Helper()
		timer := time.NewTimer(time.Until(begin.Add(time.Duration(seconds) * time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.Context().Done():
			t.Fatal("interrupted")
		}
	}
	nodes := c.client.CoreV1().Nodes()
	at(2)
	for i := range 4 {
		c.run(t, newPod(fmt.Sprintf("early-%d", i)), []string{"node-a", "node-b"}[i%2])
	}
	c.run(t, newPod("pending"), "")
	c.run(t, newPod("late"), "")
	c.run(t, newPod("db-0"), "node-a")
	at(8)
	testcluster.Create(t, nodes, newNode("node-c", "8", "zone-b"))
	c.run(t, newPod("batch", func(pod *v1.Pod) {
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
		pod.Annotations = map[string]string{controlplane.RunForAnnotation: "12s"}
	}), "node-c")
	at(12)
	c.bind(t, "late", "node-c")
	at(18)
	c.remove(t, "early-0")
	c.remove(t, "db-0")
	c.run(t, newPod("db-0"), "node-c")
	at(25)
	c.remove(t, "early-1")
	c.remove(t, "early-3")
	must.Succeed(t, nodes.Delete(t.Context(), "node-b", metav1.DeleteOptions{}))
	deleted = time.Now()
	at(48)
	return deleted
}

// deploy creates a Deployment and binds its pods to nodes in turn.
func deploy(t *testing.T, c *cluster, nodes ...string) {
	t.Helper()
	labels, replicas := map[string]string{"app": "web"}, int32(3)
	_, err := c.client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template()},
		},
	}, metav1.CreateOptions{})
	must.Succeed(t, err)
	var pods *v1.PodList
	eventually.True(t, "the pods of the Deployment", nil, func(ctx context.Context) (_ bool, err error) {
		pods, err = c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(pods.Items) == int(replicas), err
	})
	for i, pod := range pods.Items {
		c.bind(t, pod.Name, nodes[i%len(nodes)])
	}
}
