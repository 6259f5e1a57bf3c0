//go:build foreign

package prometheus

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// mixin is the recording rule of CPU of node-exporter's monitoring mixin.
const mixin = `groups:
- name: node-exporter
  rules:
  - record: instance:node_cpu_utilisation:rate5m
    expr: 1 - avg without (cpu) (sum without (mode) (rate(node_cpu_seconds_total{mode=~"idle|iowait|steal"}[5m])))
`

// young are scrapes every 30 s for an hour. Node old exists from the start and uses 20 % of its two CPUs, node young joins after
// 30 minutes and uses 10 %. Pod old uses 0.2 cores, pod young 0.6 cores in two containers; the second starts 10 minutes later.
var young = []map[string]string{
	{"series": `node_cpu_seconds_total{node="old",cpu="0",mode="idle"}`, "values": "1000+24x120"},
	{"series": `node_cpu_seconds_total{node="old",cpu="0",mode="user"}`, "values": "1000+6x120"},
	{"series": `node_cpu_seconds_total{node="old",cpu="1",mode="idle"}`, "values": "1000+24x120"},
	{"series": `node_cpu_seconds_total{node="old",cpu="1",mode="user"}`, "values": "1000+6x120"},
	{"series": `node_cpu_seconds_total{node="young",cpu="0",mode="idle"}`, "values": "_x60 40+27x60"},
	{"series": `node_cpu_seconds_total{node="young",cpu="0",mode="user"}`, "values": "_x60 20+3x60"},
	{"series": `node_cpu_seconds_total{node="young",cpu="1",mode="idle"}`, "values": "_x60 40+27x60"},
	{"series": `node_cpu_seconds_total{node="young",cpu="1",mode="user"}`, "values": "_x60 20+3x60"},
	{"series": `container_cpu_usage_seconds_total{namespace="n",pod="old",container="a"}`, "values": "1000+6x120"},
	{"series": `container_cpu_usage_seconds_total{namespace="n",pod="young",container="a"}`, "values": "_x60 6+12x60"},
	{"series": `container_cpu_usage_seconds_total{namespace="n",pod="young",container="b"}`, "values": "_x80 3+6x40"},
}

// TestYoungNodesAndPods evaluates the queries with promtool, over series of nodes and pods of different ages. A rate
// divides by the whole window: for node young, scraped for 2 of 15 minutes, the rate of the idle time is 0.14 of the
// right value, and the node looked 87 % busy.
func TestYoungNodesAndPods(t *testing.T) {
	config := metricprovider.Config{Address: "http://p", NodeLabel: "node"}
	nodes := newSource(t, config, nil)
	mean, deviation := alternatives(&nodes.config, load.CPUMean), alternatives(&nodes.config, load.CPUStdDev)
	pods, _ := newPodSource(t, config).queries("")
	var tests []map[string]any
	expect := func(query, at string, want map[string]float64) {
		samples := []map[string]any{}
		for labels, value := range want {
			samples = append(samples, map[string]any{"labels": "{" + labels + "}", "value": value})
		}
		tests = append(tests, map[string]any{"expr": "round(" + query + ", 0.01)", "eval_time": at, "exp_samples": samples})
	}
	const oldNode, youngNode, oldPod, youngPod = `node="old"`, `node="young"`, `namespace="n",pod="old"`, `namespace="n",pod="young"`
	onlyOld, both := map[string]float64{oldNode: 0.2}, map[string]float64{oldNode: 0.2, youngNode: 0.1}
	constant := map[string]float64{oldNode: 0, youngNode: 0}
	// Raw metrics: the load of a node is known as soon as it was scraped twice.
	for at, want := range map[string]map[string]float64{"30m": onlyOld, "32m": both, "36m": both, "44m": both, "59m": both} {
		expect(mean[1], at, want)
	}
	expect(deviation[1], "33m", constant)
	expect(deviation[1], "44m", constant)
	// Recording rule: the load is known when its samples are rates over 5 minutes.
	for at, want := range map[string]map[string]float64{"30m": onlyOld, "34m": onlyOld, "38m": both, "59m": both} {
		expect(mean[0], at, want)
	}
	expect(deviation[0], "44m", constant)
	// The usage of a pod is known when it was scraped for 5 minutes.
	for at, want := range map[string]map[string]float64{
		"30m": {oldPod: 0.2}, "34m": {oldPod: 0.2},
		"36m": {oldPod: 0.2, youngPod: 0.4}, "46m": {oldPod: 0.2, youngPod: 0.6},
	} {
		expect(pods, at, want)
	}
	dir := t.TempDir()
	file, err := yaml.Marshal(map[string]any{
		"rule_files": []string{"mixin.yaml"}, "evaluation_interval": "30s",
		"tests": []map[string]any{{"interval": "30s", "input_series": young, "promql_expr_test": tests}},
	})
	must.Succeed(t, err)
	for name, content := range map[string][]byte{"mixin.yaml": []byte(mixin), "tests.yaml": file} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", filepath.Join(dir, "tests.yaml")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Error(fmt.Sprint(err), string(out))
	}
}
