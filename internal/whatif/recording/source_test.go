package recording

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files are small traces in both formats, and a manifest.
var files = map[string]string{
	"nodes.csv": "sn,cpu_milli,memory_mib,gpu,model\nn1,32000,65536,2,G1\n",
	"pods.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
		"p1,1000,1024,1,500,G1,LS,Running,100,200,110\np2,1000,1024,0,0,,BE,Running,300,400,300\n",
	"short.csv": "name,cpu_milli\np1,1\n",
	"cluster.yaml": `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: pending}
spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: running}
spec: {nodeName: n1, containers: [{name: c}]}
`,
}

// chdirToFiles writes the files to a temporary directory and changes to it.
func chdirToFiles(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// openInput returns the input that a specification selects.
func openInput(t *testing.T, s Source) Input {
	t.Helper()
	return openInputOfSeed(t, s, 1)
}

// openInputOfSeed returns the input of a seed.
func openInputOfSeed(t *testing.T, s Source, seed uint64) Input {
	t.Helper()
	in, err := s.Input(seed, Limits{CPU: 2, Memory: 2})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestOpenb verifies that pods of openb arrive one per second by default, and that this
// is one of the assumptions.
func TestOpenb(t *testing.T) {
	chdirToFiles(t)
	packed := openInput(t, Source{Trace: "openb:nodes.csv,pods.csv", Pack: -1})
	if p := packed.Pods[1]; p.Arrival != 1 || p.Duration != Never {
		t.Errorf("one pod per second: arrival %d, duration %d", p.Arrival, p.Duration)
	}
	if !slices.ContainsFunc(packed.Assumptions, func(s string) bool { return strings.Contains(s, "1 per second, and do not end") }) {
		t.Errorf("one pod per second: assumptions %q", packed.Assumptions)
	}
	const workloads = "the trace names no workloads: equal pods of which each arrives within an hour of the one before are one " +
		"(2 workloads), and those of the class BE are batch jobs"
	if packed.Assumptions[0] != workloads {
		t.Errorf("assumptions %q, want %q first", packed.Assumptions, workloads)
	}
	unpacked := openInput(t, Source{Trace: "openb:nodes.csv,pods.csv", Pack: 0})
	if p := unpacked.Pods[1]; p.Arrival != 200 || p.Duration != 100 {
		t.Errorf("arrival %d, duration %d", p.Arrival, p.Duration)
	}
	if p := unpacked.Pods[0]; p.Resources.CPULimit != 2000 || p.Requests.Extended.Get(OpenbGPU) != 500 || p.Object.Spec.Affinity == nil {
		t.Errorf("%+v", p)
	}
}

// TestOpenbChurn verifies that pods of openb arrive and end in a steady state, which depends on the seed.
//
// p1 requests 500 of 2000 thousandths of GPUs and runs for 90 s, p2 none for 100 s. With an expected fill of 1 the pods
// request 2000 thousandths = rate x (500 x 90 + 0 x 100) / 2, a rate of 0.0889 per second; 0.0889 x 95 = 8 pods at the
// start, and 0.0889 x 9000 = 800 later pods.
func TestOpenbChurn(t *testing.T) {
	chdirToFiles(t)
	source := Source{Trace: "openb:nodes.csv,pods.csv,fill=1,over=9000", Pack: -1}
	in := openInputOfSeed(t, source, 1)
	if len(in.Pods) != 808 || in.Pods[7].Arrival >= fillTime || in.Pods[8].Arrival < fillTime {
		t.Errorf("%d pods", len(in.Pods))
	}
	other := openInputOfSeed(t, source, 2)
	if in.Pods[100].Arrival == other.Pods[100].Arrival && in.Pods[200].Arrival == other.Pods[200].Arrival {
		t.Error("two seeds give the same arrivals")
	}
}

// TestManifests verifies that pods keep their limits, and that pods with a node run from
// the start.
func TestManifests(t *testing.T) {
	chdirToFiles(t)
	for _, spec := range []Source{{Files: []string{"cluster.yaml"}}, {Files: []string{"-"}, Stdin: []byte(files["cluster.yaml"])}} {
		in := openInput(t, spec)
		if len(in.Pods) != 2 || in.Pods[0].Object.Name != "running" || in.Pods[1].Resources.CPULimit != 0 {
			t.Errorf("%+v", in.Pods)
		}
		// The pod has no requests.
		if p := in.Pods[0]; p.BaseCPU != 100 || p.BaseMemory != 200<<20 {
			t.Errorf("usage is a multiple of %v and %v", p.BaseCPU, p.BaseMemory)
		}
	}
}

// FuzzOpenbOptions verifies that options are in range if they are accepted.
func FuzzOpenbOptions(f *testing.F) {
	f.Add("fill=0.9,over=3600")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := openbOptions(text)
		if err == nil && (c.seconds < 1 || !(c.fill == 0 || c.fill >= 0.01 && c.fill <= 100)) {
			t.Errorf("%q: %+v", text, c)
		}
	})
}

func TestSourceErrors(t *testing.T) {
	chdirToFiles(t)
	for name, tc := range map[string]struct {
		spec Source
		want string
	}{
		"unknown": {
			Source{Trace: "google:x"},
			`--trace: invalid value "google:x": must be openb:NODES.csv,PODS.csv`,
		},
		"one file": {Source{Trace: "openb:nodes.csv"}, `--trace: invalid value "openb:nodes.csv": must be openb:NODES.csv,PODS.csv`},
		"pack and fill": {
			Source{Trace: "openb:nodes.csv,pods.csv,fill=1", Pack: 2},
			"--pack: invalid value 2: must be 0 or absent with fill in --trace",
		},
		"over alone": {Source{Trace: "openb:nodes.csv,pods.csv,over=9"}, `--trace: over: invalid value "9": must be absent without fill`},
		"no fill":    {Source{Trace: "openb:nodes.csv,pods.csv,fill=0"}, `--trace: fill: invalid value "0": must be a share such as 0.9 or 90%, from 0.01 to 10`},
		"too full": {
			Source{Trace: "openb:nodes.csv,pods.csv,fill=9,over=9999999"},
			"--trace: fill: the fill 9 for 9999999 s takes 8000075 pods: must be at most 1000000",
		},
		"no nodes": {Source{Trace: "openb:none.csv,pods.csv"}, "--trace: open none.csv: no such file or directory"},
		"no pods":  {Source{Trace: "openb:nodes.csv,none.csv"}, "--trace: open none.csv: no such file or directory"},
		"short":    {Source{Trace: "openb:nodes.csv,short.csv"}, "short.csv"},
		"generate": {Source{Generate: "nodes=0,pods=1"}, `--generate: nodes: invalid value "0": must be a whole number from 1 to`},
		"manifest": {Source{Files: []string{"none.yaml"}}, "none.yaml: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.spec.Input(1, Limits{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// TestSwapIsAssumed checks that the result names nodes with swap, which is not simulated.
func TestSwapIsAssumed(t *testing.T) {
	chdirToFiles(t)
	for name, status := range map[string]string{"swap: {capacity: 1073741824}": "1 of 1 node has swap", "swap: {capacity: 0}": "", "osImage: x": ""} {
		text := strings.Replace(files["cluster.yaml"], "status: {", "status: {nodeInfo: {"+name+"}, ", 1)
		if err := os.WriteFile("swap.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		assumed := strings.Join(openInput(t, Source{Files: []string{"swap.yaml"}}).Assumptions, "\n")
		if strings.Contains(assumed, "swap") != (status != "") || !strings.Contains(assumed, status) {
			t.Errorf("%s: assumed %q", name, assumed)
		}
	}
}
