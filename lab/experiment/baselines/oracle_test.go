package baselines

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

const oracleProfile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    preScore:
      enabled: [{name: Oracle}]
    score:
      disabled: [{name: "*"}]
      enabled: [{name: Oracle}]
`

// steps is usage with a value for each step of the oracle.
type steps struct{ cpu, memory []float64 }

// At implements recording.Usage.
func (s steps) At(age, _ int64) (cpu, memory float64) {
	i := min(int(age/oracleStep), len(s.cpu)-1)
	return s.cpu[i], s.memory[i]
}

// OfCopy implements recording.Usage.
func (s steps) OfCopy(int) recording.Usage { return s }

// oracleEngine has three nodes of 10 cores and 100 GiB.
type oracleEngine struct {
	*engine.Engine
	future Future
	now    int64
}

func newOracleEngine(t *testing.T, end int64) *oracleEngine {
	t.Helper()
	cfg, err := config.Decode("profile", []byte(oracleProfile))
	if err != nil {
		t.Fatal(err)
	}
	o := &oracleEngine{future: Future{pods: map[types.UID]*recording.InputPod{}, end: end}}
	o.Engine, err = engine.New(t.Context(), engine.Cluster{Nodes: []*v1.Node{testNode("a"), testNode("b"), testNode("c")}},
		engine.Options{Config: cfg, ExtraPlugins: Registry(o.future), Clock: func() time.Time { return recording.Time(o.now) }})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// place schedules a pod with usage and a limit in millicores, 0 for none, that runs for some steps, and returns it with its node.
func (o *oracleEngine) place(t *testing.T, name string, u steps, limit float64, life int64) (*v1.Pod, string) {
	t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.NewTime(recording.Time(o.now)),
		},
		Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{Name: "c"}}},
	}
	duration := int64(recording.Never)
	if life > 0 {
		duration = life * oracleStep
	}
	o.future.pods[pod.UID] = &recording.InputPod{Object: pod, Duration: duration, Usage: u, Resources: result.Demand{CPULimit: limit}}
	node, err := o.Schedule(t.Context(), pod, "")
	if err != nil {
		t.Fatal(err)
	}
	return pod, node
}

// TestOracleOppositePeaks has two pods that use 8 cores in the first two of four steps and 1 core in the last two, one on each of two
// nodes, and a pod that uses 3 cores on the third node. A pod with the opposite peaks fits beside either of the first two, but with
// the second peak limited to 4 cores it fits beside the third pod as well, at less cost: 7 of 10 cores.
func TestOracleOppositePeaks(t *testing.T) {
	early, late := steps{
		[]float64{8000, 8000, 1000, 1000},
		make([]float64, 4),
	}, steps{
		[]float64{1000, 1000, 8000, 8000},
		make([]float64, 4),
	}
	o := newOracleEngine(t, 4*oracleStep)
	_, first := o.place(t, "first", early, 0, 0)
	_, second := o.place(t, "second", early, 0, 0)
	_, third := o.place(t, "third", steps{[]float64{3000}, []float64{0}}, 0, 0)
	if first == second || second == third || first == third {
		t.Fatalf("pods are on %s, %s and %s", first, second, third)
	}
	pod, node := o.place(t, "late", late, 0, 0)
	if node != first && node != second {
		t.Errorf("opposite peaks are not together but on %s", node)
	}
	if err := o.RemovePod(t.Context(), pod, node); err != nil {
		t.Fatal(err)
	}
	if _, node := o.place(t, "limited", late, 4000, 0); node != third {
		t.Errorf("the pod with a limit is on %s, want %s", node, third)
	}
}

// placed is a pod with its usage from a step to another.
type placed struct {
	steps
	node     string
	from, to int64
}

// bruteForce returns the cost of all nodes over all steps: nothing is kept from one call to the next.
func bruteForce(pods []placed, end int64) (total float64) {
	for step := range end {
		load := map[string][2]float64{}
		for _, p := range pods {
			if step < p.from || step >= p.to {
				continue
			}
			cpu, memory := p.At((step-p.from)*oracleStep, 0)
			load[p.node] = [2]float64{load[p.node][0] + cpu/10_000, load[p.node][1] + memory/(100<<30)}
		}
		for _, l := range load {
			for _, u := range l {
				total += math.Pow(min(u, 1), 8) + 100*max(u-1, 0)
			}
		}
	}
	return total
}

// TestOracle compares each choice with all choices by brute force, while pods come and go.
func TestOracle(t *testing.T) {
	const end = 12
	o := newOracleEngine(t, end*oracleStep)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var pods []placed
		var objects []*v1.Pod
		for step := range int64(end) {
			o.now = step * oracleStep
			for i := range pods {
				if pods[i].to == step {
					if err := o.RemovePod(t.Context(), objects[i], pods[i].node); err != nil {
						t.Fatal(err)
					}
				}
			}
			next := placed{from: step, to: min(step+1+r.Int64N(8), end)}
			for range 8 {
				next.cpu, next.memory = append(next.cpu, 8000*r.Float64()), append(next.memory, 80*r.Float64()*(1<<30))
			}
			pod, node := o.place(t, fmt.Sprintf("pod-%d-%d", seed, step), next.steps, 0, next.to-next.from)
			least := math.Inf(1)
			costs := map[string]float64{}
			for _, name := range []string{"a", "b", "c"} {
				next.node = name
				costs[name] = bruteForce(append(slices.Clip(pods), next), end)
				least = min(least, costs[name])
			}
			if costs[node] > least*(1+1e-9)+1e-9 {
				t.Fatalf("seed %d, step %d: %s of %v", seed, step, node, costs)
			}
			next.node = node
			pods, objects = append(pods, next), append(objects, pod)
		}
		for i := range pods {
			if pods[i].to == end {
				if err := o.RemovePod(t.Context(), objects[i], pods[i].node); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
