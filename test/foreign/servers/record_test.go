//go:build foreign

package servers

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// minutes is the length of the series: two windows of two hours.
const minutes = 240

// recorded records a world.
func recorded(t *testing.T, w *world) *recording.Recording {
	t.Helper()
	var out bytes.Buffer
	config := record.Config{
		Server: metricprovider.Config{Address: w.serve(t)}, From: start, To: start.Add(minutes * time.Minute),
	}
	if _, err := record.Record(t.Context(), &out, config, record.Options{Log: func(line string) { t.Log(line) }}); err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(&out)
	must.Succeed(t, err)
	return r
}

// podOf returns a pod by its name.
func podOf(t *testing.T, r *recording.Recording, name string) *recording.Pod {
	t.Helper()
	i := slices.IndexFunc(r.Pods, func(p recording.Pod) bool { return p.Object.Name == name })
	if i < 0 {
		t.Fatalf("no pod %s", name)
	}
	return &r.Pods[i]
}

// nodeOf returns a node by its name.
func nodeOf(t *testing.T, r *recording.Recording, name string) *v1.Node {
	t.Helper()
	i := slices.IndexFunc(r.Nodes, func(n recording.Node) bool { return n.Object.Name == name })
	if i < 0 {
		t.Fatalf("no node %s", name)
	}
	return r.Nodes[i].Object
}

// missing returns what a recording lacks, as one text.
func missing(r *recording.Recording) string { return fmt.Sprint(r.About.Missing) }

// TestPendingPodFirst has a target with the label node, and a pending pod whose series are the first: only pods with a node have the label
// exported_node.
func TestPendingPodFirst(t *testing.T) {
	t.Parallel()
	w := &world{relabel: func(l labels) labels {
		out := labels{}
		for name, value := range l {
			switch name {
			case "namespace", "pod", "node", "container":
				out["exported_"+name] = value
			default:
				out[name] = value
			}
		}
		return out.with(labels{"namespace": "monitoring", "pod": "ksm", "node": "n2", "container": "ksm"})
	}}
	w.node("n1", 4, 0, minutes, nil, nil, labels{})
	w.node("n2", 4, 0, minutes, nil, nil, labels{})
	w.pod("aaa", "", 0, minutes)
	w.pod("web", "n1", 0, minutes)
	r := recorded(t, w)
	if p := podOf(t, r, "web"); p.Node != "n1" || len(r.Nodes) != 2 {
		t.Errorf("web is on %q, %d nodes, want n1 of 2", p.Node, len(r.Nodes))
	}
	if p := podOf(t, r, "aaa"); p.Node != "" {
		t.Errorf("the pending pod is on %q", p.Node)
	}
}

// TestSidecars has a sidecar, which adds to the requests of its pod, and an init container, which does not.
func TestSidecars(t *testing.T) {
	t.Parallel()
	w := &world{}
	w.node("n1", 4, 0, minutes, nil, nil, labels{})
	w.container("kube_pod_init_container", w.pod("mesh", "n1", 0, minutes), "proxy", 0, minutes, labels{"restart_policy": "Always"})
	w.container("kube_pod_init_container", w.pod("plain", "n1", 0, minutes), "init", 0, minutes, nil)
	r := recorded(t, w)
	for name, want := range map[string]int64{"mesh": 2000, "plain": 1000} {
		if got := resources.Requests(podOf(t, r, name).Object); got.Cpu().MilliValue() != want {
			t.Errorf("%s requests %s, want %d millicores", name, got.Cpu(), want)
		}
	}
	if !strings.Contains(missing(r), "pod-level resources") {
		t.Errorf("missing %s, want pod-level resources", missing(r))
	}
}

// TestNewestSeries has objects whose series change: kube-state-metrics moves (label instance), labels change, and a pod is resized. The
// newest sample counts.
func TestNewestSeries(t *testing.T) {
	t.Parallel()
	const moved = 150
	w := &world{}
	before, after := labels{"instance": "10.0.0.5:8080"}, labels{"instance": "10.0.0.9:8080"}
	w.node("n1", 4, 0, moved, labels{"label_pool": "zeta", "label_team": "x"}, nil, before)
	w.node("n1", 2, moved+1, minutes, labels{"label_pool": "alpha"}, nil, after)
	w.node("n2", 4, 0, moved, labels{"label_pool": "alpha"}, nil, before)
	w.node("n2", 4, moved+1, minutes, labels{"label_pool": "zeta"}, nil, after)
	w.add("kube_node_role", before.with(labels{"node": "n1", "role": "infra"}), 0, moved, constant(1))
	w.add("kube_node_spec_unschedulable", before.with(labels{"node": "n3"}), 0, moved, constant(1))
	w.node("n3", 4, moved+1, minutes, nil, nil, after)
	pod := w.pod("resized", "n1", 0, minutes)
	w.metrics["kube_pod_container_resource_requests"].Reset()
	w.metrics["kube_pod_container_resource_requests"].WriteString("# TYPE kube_pod_container_resource_requests unknown\n")
	request := pod.with(labels{"container": "main", "resource": "cpu"})
	w.add("kube_pod_container_resource_requests", request.with(before), 0, moved, constant(3))
	w.add("kube_pod_container_resource_requests", request.with(after), moved+1, minutes, constant(1))
	r := recorded(t, w)
	n1, n2, n3 := nodeOf(t, r, "n1"), nodeOf(t, r, "n2"), nodeOf(t, r, "n3")
	if _, hasRole := n1.Labels["node-role.kubernetes.io/infra"]; hasRole || n1.Labels["pool"] != "alpha" || n2.Labels["pool"] != "zeta" ||
		n1.Labels["team"] != "" {
		t.Errorf("labels %v and %v", n1.Labels, n2.Labels)
	}
	if n1.Status.Allocatable.Cpu().Value() != 2 || n3.Spec.Unschedulable {
		t.Errorf("n1 has %s CPU, want 2; n3 is cordoned: %t", n1.Status.Allocatable.Cpu(), n3.Spec.Unschedulable)
	}
	if got := resources.Requests(podOf(t, r, "resized").Object); got.Cpu().Value() != 1 {
		t.Errorf("requests %s, want 1", got.Cpu())
	}
}

// TestDevices has devices whose domains have no well-known end: nodes and pods have the same valid name of an extended resource.
func TestDevices(t *testing.T) {
	t.Parallel()
	w := &world{}
	devices := labels{"rdma_hca_shared": "", "nvidia_com_gpu": "", "aliyun_cn_gpu_mem": ""}
	w.node("n1", 4, 0, minutes, nil, devices, labels{})
	pod := w.pod("train", "n1", 0, minutes)
	for name := range devices {
		w.add("kube_pod_container_resource_requests", pod.with(labels{"container": "main", "resource": name, "unit": "integer"}), 0,
			minutes, constant(1))
	}
	r := recorded(t, w)
	requests := resources.Requests(podOf(t, r, "train").Object)
	found := 0
	for name := range nodeOf(t, r, "n1").Status.Allocatable {
		if !strings.Contains(string(name), "/") {
			continue
		}
		found++
		if amount := requests[name]; amount.Value() != 1 {
			t.Errorf("the pod does not request %s: %v", name, requests)
		}
	}
	if found != len(devices) {
		t.Errorf("found %d devices, want %d: %v", found, len(devices), requests)
	}
}

// TestUsageLabels has usage of a pod without the label container, and usage in which the labels of the target replace those of the pod.
func TestUsageLabels(t *testing.T) {
	t.Parallel()
	for name, used := range map[string][]labels{
		"containers and pods": {
			{"namespace": "shop", "pod": "web", "container": "main"}, {"namespace": "shop", "pod": "web"}, {"namespace": "shop", "pod": "bare"},
		},
		"exported": {
			{"exported_namespace": "shop", "exported_pod": "web", "exported_container": "main", "namespace": "kube-system", "pod": "cadvisor"},
			{"exported_namespace": "shop", "exported_pod": "bare", "exported_container": "main", "namespace": "kube-system", "pod": "cadvisor"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			w.node("n1", 4, 0, minutes, nil, nil, labels{})
			w.pod("web", "n1", 0, minutes)
			w.pod("bare", "n1", 0, minutes)
			for _, l := range used {
				w.used(l, 0, minutes)
			}
			source, err := prometheus.NewPods(metricprovider.Config{Address: w.serve(t)})
			must.Succeed(t, err)
			reading, err := source.ReadPodsAt(t.Context(), start.Add(100*time.Minute))
			if err != nil || len(reading.Pods) != 2 {
				t.Fatalf("%+v, %v, want 2 pods", reading, err)
			}
			for _, p := range reading.Pods {
				if p.Namespace != "shop" || p.CPU < 499 || p.CPU > 501 || p.Memory != 512<<20 {
					t.Errorf("%+v, want 500 millicores and 512 MiB", p)
				}
			}
			r := recorded(t, w)
			for _, pod := range []string{"web", "bare"} {
				p := podOf(t, r, pod)
				cpu, hasCPU := p.CPU.At(100)
				memory, hasMemory := p.Memory.At(100)
				if !hasCPU || !hasMemory || cpu < 499 || cpu > 501 || memory < 511<<20 || memory > 513<<20 {
					t.Errorf("%s uses %v %t and %v %t at minute 100, want 500 millicores and 512 MiB", pod, cpu, hasCPU, memory, hasMemory)
				}
			}
		})
	}
}

// TestTwoClusters has two clusters in one server: the recording, and the error of a pod of both, name the label that tells them apart.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	w := &world{}
	for _, cluster := range []string{"a", "b"} {
		w.node("n1", 4, 0, minutes, nil, nil, labels{"cluster": cluster})
		w.used(labels{"cluster": cluster, "namespace": "shop", "pod": "web-0", "container": "main"}, 0, minutes)
	}
	if text := missing(recorded(t, w)); !strings.Contains(text, `2 values of the label cluster, such as a`) {
		t.Errorf("missing %s", text)
	}
	for selector, want := range map[string]string{"": `pod shop/web-0 has series with cluster="a" and cluster="b"`, `cluster="b"`: ""} {
		source, err := prometheus.NewPods(metricprovider.Config{Address: w.serve(t), Selector: selector})
		must.Succeed(t, err)
		reading, err := source.ReadPodsAt(t.Context(), start.Add(100*time.Minute))
		if want == "" && (err != nil || len(reading.Pods) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("selector %q: %d pods, %v; want %q", selector, len(reading.Pods), err, want)
		}
	}
}
