//go:build nodes

package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// watcher is a command of plimsoll that watches the cluster and writes into a folder.
type watcher struct {
	*subprocess.Process
	name, folder, address string
}

// stop ends the command and expects exit code 0.
func (w *watcher) stop(t *testing.T) {
	t.Helper()
	w.Stop()
	if err := w.Err(); err != nil {
		t.Errorf("%s: %v\n%s", w.name, err, endOf(w.name))
	}
}

// recording returns the path of the only recording in the folder.
func (w *watcher) recording(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.folder, "*.ndjson.gz"))
	must.Succeed(t, err)
	if len(files) != 1 {
		t.Fatalf("%s has the recordings %q, want one\n%s", w.folder, files, endOf(w.name))
	}
	return files[0]
}

// startFollowing starts plimsoll record --follow with the rights of the shadow.
func startFollowing(t *testing.T) *watcher {
	t.Helper()
	_, kubeconfig, err := cluster.ChartConfig(t.Context(), "shadow")
	must.Succeed(t, err)
	w := &watcher{name: "record", folder: filepath.Join(t.TempDir(), "recordings")}
	w.Process, err = cluster.StartServer(w.name, cluster.Program("plimsoll"), "record", "--follow", "--step=2s", "--kubeconfig="+kubeconfig,
		"-o", w.folder)
	must.Succeed(t, err)
	t.Cleanup(w.Stop)
	return w
}

// startShadow starts plimsoll shadow with the rights of the chart. Its shortest window is longer than the tests.
func startShadow(t *testing.T) *watcher {
	t.Helper()
	_, kubeconfig, err := cluster.ChartConfig(t.Context(), "shadow")
	must.Succeed(t, err)
	port := program.FreePort(t)
	w := &watcher{name: "shadow", folder: filepath.Join(t.TempDir(), "shadow"), address: fmt.Sprintf("http://127.0.0.1:%d", port)}
	w.Process, err = cluster.StartServer(w.name, cluster.Program("plimsoll"), "shadow", "--every=10m", "--profile=default",
		fmt.Sprintf("--listen=127.0.0.1:%d", port), "--kubeconfig="+kubeconfig, "--folder="+w.folder)
	must.Succeed(t, err)
	t.Cleanup(w.Stop)
	must.Succeed(t, realnodes.AwaitHTTP(t.Context(), w.address+"/metrics"))
	return w
}

// recorded is a recording.
type recorded struct{ *recording.Recording }

func readRecording(t *testing.T, path string) recorded {
	t.Helper()
	file, err := os.Open(path)
	must.Succeed(t, err)
	defer file.Close()
	read, err := recording.Read(file)
	must.Succeed(t, err)
	return recorded{read}
}

// pod returns the first pod with a name.
func (r recorded) pod(t *testing.T, name string) *recording.Pod {
	t.Helper()
	i := slices.IndexFunc(r.Pods, func(p recording.Pod) bool { return p.Object.Name == name })
	if i < 0 {
		t.Fatalf("the recording has no pod %s", name)
	}
	return &r.Pods[i]
}

// lastOf returns the last value of a series, 0 if it has none.
func lastOf(s *recording.Series) float64 {
	for step := s.End() - 1; step >= s.First; step-- {
		if value, ok := s.At(step); ok {
			return value
		}
	}
	return 0
}

// testRecording expects the pods of all tests in the recording: their nodes, ends, usage, and the kill.
func testRecording(t *testing.T, w *watcher) {
	w.stop(t)
	r := readRecording(t, w.recording(t))
	if !slices.ContainsFunc(r.About.Kills, func(kill recording.Kill) bool { return kill.Pod == killed && kill.Time.After(r.About.From) }) {
		t.Errorf("kills: %+v, want one of %s", r.About.Kills, killed)
	}
	for _, kill := range r.About.Kills {
		if kill.Namespace != namespace || kill.Pod != killed {
			t.Errorf("kill of %s, which has not used too much memory", kill.Pod)
		}
	}
	for name, millicores := range kindsCPU {
		pod := r.pod(t, name)
		if pod.Node != kindsNode || pod.Ended != recording.Never {
			t.Errorf("pod %s is on %q and ended at %d, want %s and never", name, pod.Node, pod.Ended, kindsNode)
		}
		if cpu := recording.PodAmounts(pod.Object).CPU; cpu != millicores {
			t.Errorf("pod %s requests %dm, want %dm", name, cpu, millicores)
		}
	}
	finished := r.pod(t, "finished")
	if finished.Ended == recording.Never || finished.Ended > finished.Created+60 {
		t.Errorf("the finished pod was created at %d and ended at %d", finished.Created, finished.Ended)
	}
	busy, calm := r.pod(t, "busy"), r.pod(t, "calm")
	if busy.Node != busyNode || calm.Node != calmNode {
		t.Errorf("pods are on %s and %s, want %s and %s", busy.Node, calm.Node, busyNode, calmNode)
	}
	between(t, "recorded millicores of busy", lastOf(&busy.CPU), busyCPU, busyCPU+overhead)
	between(t, "recorded millicores of calm", lastOf(&calm.CPU), calmCPU, calmCPU+overhead)
	held := r.pod(t, "memory")
	between(t, "recorded bytes of memory", lastOf(&held.Memory), heldMiB<<20, (heldMiB+16)<<20)
	// The recreated node is another node of the same name.
	same := 0
	for i := range r.Nodes {
		if r.Nodes[i].Object.Name == busyNode {
			same++
		}
	}
	if same != 2 || len(r.Nodes) != len(cluster.Nodes)+1 {
		t.Errorf("%d nodes are named %s, of %d nodes, want 2 of %d", same, busyNode, len(r.Nodes), len(cluster.Nodes)+1)
	}
	// The static pod runs on its node in the simulation, too.
	input, err := recording.Source{Recording: w.recording(t)}.Input()
	must.Succeed(t, err)
	for i := range input.Pods {
		pod := &input.Pods[i]
		isPlaced := pod.Object.Spec.NodeName == kindsNode || pod.Recorded.Fixed && pod.Recorded.Node == kindsNode
		if pod.Object.Name == staticPod && !isPlaced {
			t.Errorf("the simulation schedules the static pod: %+v", pod.Recorded)
		}
	}
}

// testShadow expects that the shadow has recorded the cluster, and says that it has no window yet.
func testShadow(t *testing.T, w *watcher) {
	found, err := metrics(t.Context(), w.address)
	must.Succeed(t, err)
	if windows, ok := found["plimsoll_shadow_windows"]; !ok || windows != 0 {
		t.Errorf("the shadow has %v windows (%v), want 0", windows, ok)
	}
	w.stop(t)
	r := readRecording(t, w.recording(t))
	for _, name := range []string{"busy", "calm", staticPod} {
		if node := r.pod(t, name).Node; node == "" {
			t.Errorf("pod %s has no node in the recording of the shadow", name)
		}
	}
}

// startAgent starts the agent with the rights of the chart. The cluster is its own hub.
func startAgent(t *testing.T) {
	t.Helper()
	_, kubeconfig, err := cluster.ChartConfig(t.Context(), "agent")
	must.Succeed(t, err)
	agent, err := cluster.StartServer(
		"agent",
		cluster.Program("plimsoll-controller"),
		"--agent",
		"--cluster-name=cluster1",
		"--kubeconfig="+kubeconfig,
		"--hub-kubeconfig="+cluster.Kubeconfig,
		"--interval=2s",
		"--report-resources=never",
		"--leader-elect=false",
		"--load-provider=KubernetesMetricsServer",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=0",
	)
	must.Succeed(t, err)
	t.Cleanup(agent.Stop)
}

// testAgent expects that the ClusterCapacity has for each node what the requests of its pods leave free.
func testAgent(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, capacityv1alpha1.AddToScheme(scheme))
	reader, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	must.Succeed(t, err)
	retry(t, eventually.Limit, "waiting for the capacity", func(ctx context.Context) error {
		var capacity capacityv1alpha1.ClusterCapacity
		if err := reader.Get(ctx, client.ObjectKey{Namespace: "cluster1", Name: "plimsoll"}, &capacity); err != nil {
			return fmt.Errorf("%w\n%s", err, endOf("agent"))
		}
		var free, want []int64
		for _, group := range capacity.Status.Groups {
			for range group.Nodes {
				free = append(free, group.Free.Cpu().MilliValue())
			}
		}
		pods, err := cluster.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var all []*v1.Pod
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
				all = append(all, pod)
			}
		}
		for _, node := range cluster.Nodes {
			sum, _ := requestsOn(all, node.Name)
			want = append(want, nodeCPU-sum)
		}
		slices.Sort(free)
		slices.Sort(want)
		if !slices.Equal(free, want) {
			return fmt.Errorf("free millicores by node: %v, want %v\n%s", free, want, endOf("agent"))
		}
		return nil
	})
}
