//go:build foreign

package servers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/prometheus"
)

// start is the time of the first samples.
var start = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

// labels are the labels of a series.
type labels map[string]string

// with returns the labels and further labels.
func (l labels) with(more labels) labels {
	out := maps.Clone(l)
	maps.Copy(out, more)
	return out
}

// world is the content of a server: a text in the OpenMetrics format for each metric.
type world struct {
	metrics map[string]*strings.Builder
	// relabel, if set, changes the labels of series of kube-state-metrics.
	relabel func(labels) labels
}

// add adds a series with a sample a minute, from one minute to another.
func (w *world) add(name string, l labels, from, to int, value func(minute int) float64) {
	if w.metrics == nil {
		w.metrics = map[string]*strings.Builder{}
	}
	if w.metrics[name] == nil {
		w.metrics[name] = &strings.Builder{}
		fmt.Fprintf(w.metrics[name], "# TYPE %s unknown\n", name)
	}
	if w.relabel != nil && strings.HasPrefix(name, "kube_") {
		l = w.relabel(l)
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(l)) {
		if l[key] != "" {
			pairs = append(pairs, fmt.Sprintf("%s=%q", key, l[key]))
		}
	}
	for minute := from; minute <= to; minute++ {
		fmt.Fprintf(w.metrics[name], "%s{%s} %g %d\n", name, strings.Join(pairs, ","), value(minute), start.Unix()+60*int64(minute))
	}
}

// constant returns a value that does not change.
func constant(value float64) func(int) float64 { return func(int) float64 { return value } }

// node adds a node with 16 GiB of memory. Its labels and devices are exported with underscores.
func (w *world) node(name string, cores float64, from, to int, l labels, devices labels, target labels) {
	node := target.with(labels{"node": name})
	w.add("kube_node_info", node, from, to, constant(1))
	w.add("kube_node_created", node, from, to, constant(float64(start.Unix()-86400)))
	w.add("kube_node_spec_unschedulable", node, from, to, constant(0))
	w.add("kube_node_labels", node.with(l), from, to, constant(1))
	amounts := map[string]float64{"cpu": cores, "memory": 16 << 30, "pods": 110}
	for name := range devices {
		amounts[name] = 1
	}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		w.add("kube_node_status_allocatable", node.with(labels{"resource": name}), from, to, constant(amounts[name]))
	}
}

// pod adds a pod with a container of 1 CPU and 1 GiB; node is empty for a pending pod.
func (w *world) pod(name, node string, from, to int) labels {
	pod := labels{"namespace": "shop", "pod": name, "uid": "uid-" + name}
	w.add("kube_pod_info", pod.with(labels{"node": node, "created_by_kind": "ReplicaSet", "created_by_name": name}), from, to, constant(1))
	w.add("kube_pod_created", pod, from, to, constant(float64(start.Unix())))
	if node != "" {
		w.add("kube_pod_status_scheduled_time", pod, from, to, constant(float64(start.Unix()+1)))
	}
	w.container("kube_pod_container", pod, "main", from, to, nil)
	return pod
}

// container adds a container of 1 CPU and 1 GiB.
func (w *world) container(prefix string, pod labels, name string, from, to int, info labels) {
	container := pod.with(labels{"container": name})
	w.add(prefix+"_info", container.with(info).with(labels{"image_spec": "i"}), from, to, constant(1))
	w.add(prefix+"_resource_requests", container.with(labels{"resource": "cpu"}), from, to, constant(1))
	w.add(prefix+"_resource_requests", container.with(labels{"resource": "memory"}), from, to, constant(1<<30))
}

// used adds the usage of half a core and 512 MiB, with labels.
func (w *world) used(l labels, from, to int) {
	w.add("container_cpu_usage_seconds_total", l, from, to, func(minute int) float64 { return 30 * float64(minute) })
	w.add("container_memory_working_set_bytes", l, from, to, constant(512<<20))
}

// serve starts a server with the series, and returns its address.
func (w *world) serve(t *testing.T) string {
	t.Helper()
	server, err := prometheus.Find()
	must.Succeed(t, err)
	folder := t.TempDir()
	data, text := filepath.Join(folder, "data"), filepath.Join(folder, "series.txt")
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.metrics)) {
		all.WriteString(w.metrics[name].String())
	}
	all.WriteString("# EOF\n")
	config := filepath.Join(folder, "prometheus.yaml")
	for name, content := range map[string]string{text: all.String(), config: "global: {}\n"} {
		must.Succeed(t, os.WriteFile(name, []byte(content), 0o600))
	}
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", text, data).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v: %s", err, out)
	}
	address := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	process := program.Start(t, server, "--config.file="+config, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100y",
		"--web.listen-address="+address)
	eventually.True(t, "Prometheus is not ready", process, func(ctx context.Context) (bool, error) {
		_, err := program.Get(ctx, "http://"+address+"/-/ready")
		return err == nil, nil
	})
	return "http://" + address
}
