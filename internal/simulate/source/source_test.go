package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/input"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// files are small traces in both formats, and a manifest.
var files = map[string]string{
	"nodes.csv": "sn,cpu_milli,memory_mib,gpu,model\nn1,32000,65536,2,G1\n",
	"pods.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
		"p1,1000,1024,1,500,G1,LS,Running,100,200,110\np2,1000,1024,0,0,,BE,Running,300,400,300\n",
	"short.csv":                  "name,cpu_milli\np1,1\n",
	"alibaba/machine_meta.csv":   "m_1,0,1,1,96,100,USING\n",
	"alibaba/container_meta.csv": "c_1,m_1,0,app_1,started,400,800,1.56\n",
	"bare/machine_meta.csv":      "m_1,0,1,1,96,100,USING\n",
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

// open returns the input that a specification selects.
func open(t *testing.T, s Spec) input.Cluster {
	t.Helper()
	read, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return read.Input(1, usage.Limits{CPU: 2, Memory: 2})
}

// TestOpenb verifies that pods of openb arrive one per second by default, and that this
// is one of the assumptions.
func TestOpenb(t *testing.T) {
	chdirToFiles(t)
	packed := open(t, Spec{Trace: "openb:nodes.csv,pods.csv", Pack: -1})
	if p := packed.Pods[1]; p.Arrival != 1 || p.Duration != trace.Never {
		t.Errorf("one pod per second: arrival %d, duration %d", p.Arrival, p.Duration)
	}
	if !slices.ContainsFunc(packed.Assumptions, func(s string) bool { return strings.Contains(s, "1 per second, and do not end") }) {
		t.Errorf("one pod per second: assumptions %q", packed.Assumptions)
	}
	unpacked := open(t, Spec{Trace: "openb:nodes.csv,pods.csv", Pack: 0})
	if p := unpacked.Pods[1]; p.Arrival != 200 || p.Duration != 100 {
		t.Errorf("arrival %d, duration %d", p.Arrival, p.Duration)
	}
	if p := unpacked.Pods[0]; p.Resources.CPULimit != 2000 || p.Requests.GPU != 500 || p.Object.Spec.Affinity == nil {
		t.Errorf("%+v", p)
	}
}

func TestAlibaba(t *testing.T) {
	chdirToFiles(t)
	in := open(t, Spec{Trace: "alibaba2018:alibaba,from=0,to=100,memory-gib=100", Pack: -1})
	// A request of 400 and a limit of 800 hundredths of a core; 1.56 % of 100 GiB.
	if p := in.Pods[0]; p.Requests.CPU != 4000 || p.Resources.CPULimit != 8000 || p.Requests.Memory>>20 != 1597 {
		t.Errorf("%+v", p)
	}
}

// TestManifests verifies that pods keep their limits, and that pods with a node run from
// the start.
func TestManifests(t *testing.T) {
	chdirToFiles(t)
	for _, spec := range []Spec{{Files: []string{"cluster.yaml"}}, {Files: []string{"-"}, Stdin: []byte(files["cluster.yaml"])}} {
		in := open(t, spec)
		if len(in.Pods) != 2 || in.Pods[0].Object.Name != "running" || in.Pods[1].Resources.CPULimit != 0 {
			t.Errorf("%+v", in.Pods)
		}
		// The pod has no requests.
		if p := in.Pods[0]; p.BaseCPU != 100 || p.BaseMemory != 200<<20 {
			t.Errorf("usage is a multiple of %v and %v", p.BaseCPU, p.BaseMemory)
		}
	}
}

func TestErrors(t *testing.T) {
	chdirToFiles(t)
	for name, tc := range map[string]struct {
		spec Spec
		want string
	}{
		"unknown": {
			Spec{Trace: "google:x"},
			`--trace: invalid value "google:x": must be openb:NODES.csv,PODS.csv or alibaba2018:DIR`,
		},
		"one file":       {Spec{Trace: "openb:nodes.csv"}, `--trace: invalid value "openb:nodes.csv": must be openb:NODES.csv,PODS.csv`},
		"no nodes":       {Spec{Trace: "openb:none.csv,pods.csv"}, "--trace: open none.csv: no such file or directory"},
		"no pods":        {Spec{Trace: "openb:nodes.csv,none.csv"}, "--trace: open none.csv: no such file or directory"},
		"short":          {Spec{Trace: "openb:nodes.csv,short.csv"}, "short.csv"},
		"no folder":      {Spec{Trace: "alibaba2018:"}, "--trace: must be alibaba2018:DIR"},
		"no machines":    {Spec{Trace: "alibaba2018:none"}, "--trace: open none/machine_meta.csv: no such file or directory"},
		"only machines":  {Spec{Trace: "alibaba2018:bare"}, "--trace: bare: container_meta.csv or batch_task.csv is required"},
		"empty window":   {Spec{Trace: "alibaba2018:alibaba,from=9,to=9"}, `--trace: to: invalid value "9": must be more than from`},
		"unknown option": {Spec{Trace: "alibaba2018:alibaba,form=9"}, `--trace: unknown key "form": must be one of `},
		"generate":       {Spec{Generate: "nodes=0,pods=1"}, `--generate: nodes: invalid value "0": must be a whole number from 1 to`},
		"manifest":       {Spec{Files: []string{"none.yaml"}}, "none.yaml: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(tc.spec); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}
