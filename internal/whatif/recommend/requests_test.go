package recommend

import (
	"math"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// A quantile of a histogram is at least the quantile of the readings, and at most 4.5 % above.
func TestHistogramQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		readings := rapid.SliceOfN(rapid.Float64Range(1, 1e12), 1, 50).Draw(t, "readings")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		h := histogram{}
		for _, reading := range readings {
			h.add(reading, 1)
		}
		slices.Sort(readings)
		exact := readings[max(int(math.Ceil(q*float64(len(readings))*(1-1e-12)))-1, 0)]
		if got := h.quantile(q); got < exact*(1-1e-9) || got > 1.045*exact {
			t.Fatalf("%v-quantile of %v is %v, want %v", q, readings, got, exact)
		}
	})
}

// recordingOf returns a recording of one pod of a StatefulSet from second 0, with a reading of CPU in millicores and memory in MiB each minute.
func recordingOf(cpu, memory []float64) *recording.Recording {
	p := recording.Pod{Ended: recording.Never, Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "db-0",
		OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: new(true)}},
	}}}
	for i := range cpu {
		p.CPU.Set(i, cpu[i])
		p.Memory.Set(i, memory[i]*(1<<20))
	}
	return &recording.Recording{About: recording.About{Step: 60}, Pods: []recording.Pod{p}}
}

func TestRules(t *testing.T) {
	const minutes = 2 * 24 * 60
	cpu, memory := make([]float64, minutes), make([]float64, minutes)
	for i := range cpu {
		// The first day uses 400m and 800Mi, the second 100m and 200Mi.
		cpu[i], memory[i] = 400, 800
		if i >= minutes/2 {
			cpu[i], memory[i] = 100, 200
		}
	}
	uses := usesOf(recordingOf(cpu, memory), 0, minutes*60)
	if len(uses) != 1 || uses[0].readings != minutes || uses[0].pods != 1 {
		t.Fatalf("%+v", uses)
	}
	for name, want := range map[string]struct{ cpu, memory float64 }{
		// Readings of the first day have half of the weight or less: more than 0.1 in sum, so p90 is 400, with 15 %.
		"VPA's defaults": {460, 920},
		// p95 is 400; the maximum of memory with 15 %.
		"KRR's defaults": {400, 920},
		// Half of the readings are 100.
		"requests of CPU p50, memory p95 + 15 %": {100, 920},
	} {
		rules := newRules()
		i := slices.IndexFunc(rules, func(r rule) bool { return r.Name == name })
		gotCPU, gotMemory := rules[i].requestsFor(uses[0])
		if relative := float64(gotCPU) / want.cpu; relative < 1 || relative > 1.05 {
			t.Errorf("%s: CPU %d, want %v", name, gotCPU, want.cpu)
		}
		if relative := float64(gotMemory) / (want.memory * (1 << 20)); relative < 0.99 || relative > 1.05 {
			t.Errorf("%s: memory %d, want %v Mi", name, gotMemory, want.memory)
		}
	}
}

// Workloads with little use, or with more use than any node has, keep their requests, which the result says.
func TestKeptWorkloads(t *testing.T) {
	large := resources.Amounts{CPU: 8000, Memory: 1 << 40}
	constant := func(minutes int, cpu float64) *recording.Recording {
		return recordingOf(slices.Repeat([]float64{cpu}, minutes), slices.Repeat([]float64{1}, minutes))
	}
	for name, tc := range map[string]struct {
		r    *recording.Recording
		want string
	}{
		"a day":        {constant(1441, 100), ""},
		"half a day":   {constant(720, 100), "1 workload keeps its requests because less than a day of use, or fewer than 100 readings, are recorded: StatefulSet shop/db"},
		"larger":       {constant(1441, 9000), "1 workload keeps its requests because no node has as much as these requests would be: StatefulSet shop/db"},
		"next to none": {constant(1441, 0), ""},
	} {
		rules := newRules()
		kept, got := fillRules(rules, usesOf(tc.r, 0, 1<<30), &constraints{}, large), ""
		kept = append(kept, rules[1].kept...)
		for i := range kept {
			got += kept[i].summary()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if name == "next to none" { // floors
			if r := rules[1].table[0]; r.CPU != recording.MinMilliCPU || r.Memory != recording.MinMemory {
				t.Errorf("%+v, want at least 25m and 64Mi", r)
			}
		}
		if len(rules[0].table) != 0 || !strings.Contains(rules[0].Name, "as they are") {
			t.Errorf("%s: the first rule changes requests", name)
		}
	}
}

// TestMemoryFloor verifies that no memory request is below the median of the daily peaks, and that a patch with less than p99 of the use says
// so, and is counted. In three days, 3 % of the readings are 1000 MiB, the others 100 MiB: p95 is 100, with 15 % 118 at most, and p99 1000.
func TestMemoryFloor(t *testing.T) {
	for name, tc := range map[string]struct {
		isPeak func(minute int) bool
		want   int64
		marked bool
	}{
		"peaks on each day": {func(minute int) bool { return minute%1440 < 44 }, 1000, false},
		"peaks on one day":  {func(minute int) bool { return minute < 132 }, 115, true},
	} {
		cpu, memory := slices.Repeat([]float64{100}, 3*1440), slices.Repeat([]float64{100}, 3*1440)
		for i := range memory {
			if tc.isPeak(i) {
				memory[i] = 1000
			}
		}
		uses := usesOf(recordingOf(cpu, memory), 0, 3*86400)
		uses[0].pod.Spec.Containers = []v1.Container{{Name: "main"}}
		rules := newRules()[3:4] // CPU p50, memory p95 + 15 %
		fillRules(rules, uses, &constraints{}, resources.Amounts{})
		w := &rules[0].table[0]
		if got := w.Memory >> 20; got < tc.want || got > tc.want*105/100 {
			t.Errorf("%s: memory %d MiB, want %d", name, got, tc.want)
		}
		text, err := patchText(w, uses[0], "")
		must.Succeed(t, err)
		counted := (&Result{Requests: rules[0].table, uses: map[resources.Workload]*workloadUse{uses[0].Workload: uses[0]}}).belowP99Text()
		if strings.Contains(string(text), "below p99") != tc.marked || strings.HasPrefix(counted, " 1 of 1 workload,") != tc.marked {
			t.Errorf("%s: counted %q\n%s", name, counted, text)
		}
	}
}

// TestManifests verifies what is written to apply a profile, and the requests of workloads of each kind.
func TestManifests(t *testing.T) {
	for name, want := range map[string]string{
		"packed":           "use: packed}",
		"default":          "use: default}",
		"allocatable-most": "# helm upgrade -n plimsoll-system --reuse-values --set-file scheduler.config=scheduler.yaml plimsoll CHART\n# ", // not in the chart
	} {
		profile, err := engine.ReadConfig(name)
		must.Succeed(t, err)
		if m := profileManifest(profile); !strings.Contains(string(m.Text), want) {
			t.Errorf("%s: %s: %s, want %q", name, m.Name, m.Text, want)
		}
	}
	const inTemplate = `{"spec":{"template":{"spec":{"containers":[` +
		`{"name":"main","resources":{"requests":{"cpu":"200m","memory":"100Mi"}}}]}}}}`
	for name, tc := range map[string]struct{ kind, owner, command, patch string }{
		"ReplicaSet":  {"ReplicaSet", "web-6c9f8", "ReplicaSet web-6c9f8 of namespace shop: set these requests in its manifest", inTemplate},
		"Deployment":  {"ReplicaSet", "web-7d4b9", "kubectl patch deployment web -n shop --patch-file", inTemplate},
		"StatefulSet": {"StatefulSet", "web", "kubectl patch statefulset web -n shop --patch-file", inTemplate},
		"CronJob": {
			"Job", "web-29000000", "kubectl patch cronjob web -n shop --patch-file", `{"spec":{"jobTemplate":` + inTemplate + `}}`,
		},
		"Job":     {"Job", "web", "Job web of namespace shop: set these requests in its manifest", inTemplate},
		"Rollout": {"Rollout", "web", "Rollout web of namespace shop: set these requests in its manifest", inTemplate},
	} {
		r := recordingOf([]float64{100}, []float64{50})
		pod := r.Pods[0].Object
		pod.Labels = map[string]string{"pod-template-hash": "7d4b9"}
		pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = tc.kind, tc.owner
		pod.Spec.Containers = []v1.Container{{Name: "main"}, {Name: "istio-proxy"}}
		u := usesOf(r, 0, 60)[0]
		if name == "Deployment" { // whose template is known
			pod.Spec.Containers[1].Name, u.template = "shop-proxy", []string{"main"}
			pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{
				v1.ResourceCPU:    resource.MustParse("1"),
				v1.ResourceMemory: resource.MustParse("1Gi"),
			}
		}
		text, err := patchText(
			&recording.WorkloadRequests{Namespace: "shop", Kind: u.Kind, Name: u.Name, CPU: 200, Memory: 100 << 20},
			u,
			"",
		)
		must.Succeed(t, err)
		patch, err := yaml.YAMLToJSON(text)
		if err != nil || string(patch) != tc.patch || !strings.HasPrefix(string(text), "# "+tc.command) {
			t.Errorf("%s: %s\n%s, %v", name, text, patch, err)
		}
	}
}
