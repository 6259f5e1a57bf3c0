package recording

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// files is a manifest.
var files = map[string]string{
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
		must.Succeed(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Succeed(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// openInput returns the input that a specification selects.
func openInput(t *testing.T, s Source) Input {
	t.Helper()
	in, err := s.Input()
	must.Succeed(t, err)
	return in
}

// TestUsageMissing checks that an input states how many pods have no requests and no usage, unless the usage is known or few pods lack it.
func TestUsageMissing(t *testing.T) {
	chdirToFiles(t)
	objects, err := manifest.Read([]string{"cluster.yaml"}, nil)
	must.Succeed(t, err)
	kept, _, err := ReadSnapshot(time.Now(), manifest.Files([]string{"cluster.yaml"}, nil))
	must.Succeed(t, err)
	write := func(name string) string {
		must.Succeed(t, kept.WriteFile(name))
		return name
	}
	for name, tc := range map[string]struct {
		source Source
		usage  []load.PodUsage
		want   string
	}{
		"manifests":       {Source{Files: []string{"cluster.yaml"}}, nil, "1 of 2 pods has no request for CPU or for memory, and its"},
		"snapshot":        {Source{Recording: "s"}, []load.PodUsage{}, "1 of 2 pods has no request"},
		"usage of others": {Source{Recording: "s"}, []load.PodUsage{{Namespace: "default", Name: "pending"}}, "1 of 2 pods has no request"},
		"usage":           {Source{Recording: "s"}, []load.PodUsage{{Namespace: "default", Name: "running"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.usage != nil {
				kept.Usage = &load.PodReading{Time: time.Now(), Pods: tc.usage}
				tc.source.Recording = write(filepath.Join(t.TempDir(), "s.ndjson.gz"))
			}
			missing := strings.Join(openInput(t, tc.source).Missing, "\n")
			if !strings.HasPrefix(missing, tc.want) || tc.want == "" && missing != "" {
				t.Errorf("%q, want %q", missing, tc.want)
			}
		})
	}
	few := Input{Pods: make([]InputPod, 101)}
	for i := range few.Pods[1:] {
		few.Pods[i].Resources = fromPod(objects.Pending[0]).Resources
	}
	if few.noteMissingUsage(); len(few.Missing) != 0 {
		t.Errorf("1 of 101 pods: %q", few.Missing)
	}
}

// TestNoSpare checks that pods with a negative priority are left out, with an assumption that has their number.
func TestNoSpare(t *testing.T) {
	files := []string{filepath.Join(t.TempDir(), "pods.yaml")}
	const text = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: pause}
spec: {priority: -10, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {priority: 0, containers: [{name: c}]}
`
	must.Succeed(t, os.WriteFile(files[0], []byte(text), 0o600))
	if all := openInput(t, Source{Files: files}); len(all.Pods) != 2 {
		t.Errorf("%d pods, want 2", len(all.Pods))
	}
	in := openInput(t, Source{Files: files, NoSpare: true})
	const want = "1 of 2 pods is left out: pods with a negative priority reserve capacity, as slack does"
	if len(in.Pods) != 1 || in.Pods[0].Object.Name != "web" || !strings.Contains(strings.Join(in.Assumptions, "\n"), want) {
		t.Errorf("%d pods, assumptions %q; want 1 and %q", len(in.Pods), in.Assumptions, want)
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

// TestSwapIsAssumed checks that the result names nodes with swap, which is not simulated.
func TestSwapIsAssumed(t *testing.T) {
	chdirToFiles(t)
	for name, status := range map[string]string{"swap: {capacity: 1073741824}": "1 of 1 node has swap", "swap: {capacity: 0}": "", "osImage: x": ""} {
		text := strings.Replace(files["cluster.yaml"], "status: {", "status: {nodeInfo: {"+name+"}, ", 1)
		must.Succeed(t, os.WriteFile("swap.yaml", []byte(text), 0o600))
		assumed := strings.Join(openInput(t, Source{Files: []string{"swap.yaml"}}).Assumptions, "\n")
		if strings.Contains(assumed, "swap") != (status != "") || !strings.Contains(assumed, status) {
			t.Errorf("%s: assumed %q", name, assumed)
		}
	}
}

// TestGatesAreAssumed checks that the result names pending pods with scheduling gates, which are not simulated.
func TestGatesAreAssumed(t *testing.T) {
	const gates = "schedulingGates: [{name: kueue.x-k8s.io/admission}], "
	for node, want := range map[string]bool{"": true, "nodeName: n1, ": false} {
		text := strings.Replace(files["cluster.yaml"], "spec: {", "spec: {"+gates+node, 1)
		in := openInput(t, Source{Files: []string{"-"}, Stdin: []byte(text)})
		const sentence = "1 pod with scheduling gates is scheduled as if the gates were removed"
		if assumed := strings.Join(in.Assumptions, "\n"); strings.Contains(assumed, sentence) != want {
			t.Errorf("%q: assumed %q", node, assumed)
		}
	}
}

// TestWriteSpan checks that a run of a span reads the same from the file of the span as from the whole recording, also if the span does not
// begin at a step of the usage, the usage has a gap there, or ended before it.
func TestWriteSpan(t *testing.T) {
	folder, files := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		r := draw(t)
		r.Objects = nil
		r.About.Step = rapid.SampledFrom([]int{15, 60, 300}).Draw(t, "step")
		r.finish()
		from := rapid.Int64Range(0, 30*60).Draw(t, "from")
		to := from + 60*rapid.Int64Range(1, 20).Draw(t, "minutes")
		files++
		text, err := r.WriteSpan(filepath.Join(folder, fmt.Sprint(files, Extension)), from, to)
		must.Succeed(t, err)
		written, err := openFlag(text)
		must.Succeed(t, err)
		want, err := r.Part(from, to)
		must.Succeed(t, err)
		got, err := written.part()
		must.Succeed(t, err)
		source := Source{Pack: 1, Reschedule: rapid.Bool().Draw(t, "reschedule")}
		if a, b := describe(want.Input(source)), describe(got.Input(source)); a != b {
			t.Errorf("from the recording:\n%s\nfrom the span:\n%s", a, b)
		}
	})
}

// TestPartOfSeries checks that each step of a part of a series has the same nearest value as in the series, also if the series begins after the
// part or ends before it.
func TestPartOfSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, math.NaN()}), 1, 20).Draw(t, "values")
		s := NewSeries(rapid.IntRange(0, 40).Draw(t, "first"), values...)
		s.clip(s.End())
		from := rapid.IntRange(0, 40).Draw(t, "from")
		to := from + rapid.IntRange(1, 20).Draw(t, "steps")
		part := s.between(from, to)
		part.clip(to - from + 1)
		if (part.Len() == 0) != (s.Len() == 0) {
			t.Fatalf("%d values from %d to %d of %d values from %d on", part.Len(), from, to, s.Len(), s.First)
		}
		whole, _ := s.withoutGaps()
		filled, _ := part.withoutGaps()
		for step := from; s.Len() > 0 && step <= to; step++ {
			if want, got := whole.nearest(step), filled.nearest(step-from); got != want {
				t.Errorf("step %d: %v, want %v", step, got, want)
			}
		}
	})
}

// describe returns what a run reads of an input, with the usage of the pods until the end.
func describe(in Input) (text string) {
	text = in.Start.Format(time.RFC3339)
	for _, n := range in.Nodes {
		text += fmt.Sprintln(n.Object.Name, n.Appeared, n.Gone)
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		text += fmt.Sprint(p.Object.Name, p.Object.Spec.NodeName, p.Arrival, p.Duration, *p.Recorded)
		for second := p.Arrival; p.Usage != nil && second < in.End; second += 10 {
			cpu, memory := p.Usage.At(second-p.Arrival, 0)
			text += fmt.Sprint(" ", cpu, memory)
		}
		text += "\n"
	}
	return text
}
