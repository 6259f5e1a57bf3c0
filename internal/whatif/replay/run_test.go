package replay

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const gib = 1 << 30

// testOptions are the options of a run, and the usage that is generated for its pods.
type testOptions struct {
	Options
	usage generate.UsageSpec
	seed  uint64
	// Tail is how many seconds runs continue after the last arrival, unless they are of a recording.
	Tail int64
}

// options returns the options of a run with a built-in profile.
func options(t testing.TB, profile, use string, seed uint64) testOptions {
	t.Helper()
	read, err := engine.ReadConfig(profile)
	must.Succeed(t, err)
	config, err := read.Config()
	must.Succeed(t, err)
	spec, err := generate.ParseUsage(use)
	must.Succeed(t, err)
	metrics := result.Metrics{IntervalSeconds: 60, DelaySeconds: 60, WindowSeconds: 900}
	return testOptions{Options{Config: config, Metrics: metrics}, spec, seed, 600}
}

// machine returns a node with cores and GiB of memory.
func machine(name string, cores, memory int64) recording.Node {
	return generate.NewNode(name, resources.Amounts{CPU: cores * 1000, Memory: memory * gib})
}

// needs returns a pod that requests cores and GiB of memory.
func needs(name string, cores, memory, arrival, end int64) generate.NewPod {
	duration := end
	if end != recording.Never {
		duration = end - arrival
	}
	return generate.NewPod{
		Name: name, Requests: resources.Amounts{CPU: cores * 1000, Memory: memory * gib}, Arrival: arrival, Duration: duration,
	}
}

// longestTail is longer than a test continues after the last arrival.
const longestTail = 24 * 3600

// completed returns a generated cluster as an input.
func completed(c generate.NewCluster, limits generate.Limits, seed uint64) recording.Input {
	c.Limits, c.Seed, c.Tail = limits, seed, longestTail
	return generatedInput(c.Recording())
}

// generatedInput returns the input of a recording that is generated.
func generatedInput(r *recording.Recording) recording.Input {
	part, err := r.Part(0, 0)
	if err != nil {
		panic(err)
	}
	return part.Input(recording.Source{})
}

// withUsage returns a copy of an input with generated usage and an end.
func (o *testOptions) withUsage(t *testing.T, in recording.Input) recording.Input {
	t.Helper()
	in.Pods = slices.Clone(in.Pods)
	must.Succeed(t, generate.AddUsage(&in, o.usage, o.seed))
	if in.Part == nil {
		in.SetEnd(o.Tail)
	}
	return in
}

// outcomeOf returns the result of a run.
func outcomeOf(t *testing.T, in recording.Input, o testOptions) result.Run {
	t.Helper()
	run, err := Run(t.Context(), o.withUsage(t, in), o.Options)
	must.Succeed(t, err)
	return run
}

// TestRun has two nodes of 4 cores and 16 GiB and two pods of 2 cores and 4 GiB, with limits of
// twice the requests; the default profile binds one to each node. Both have a demand of 3 times
// their requests: 6 cores and 12 GiB. The limits permit 4 cores, which the node has, and 8 GiB.
//
// At 60 s a third pod of 1 core and 4 GiB arrives, with limits of 2 cores and 8 GiB. The
// demand within limits on its node is then 6 cores of 4, so that 2 cores are missing, and
// 16 GiB of memory, which the node has.
//
// The run ends at 660 s, 600 s after the last arrival.
func TestRun(t *testing.T) {
	cluster := generate.NewCluster{
		Nodes: []recording.Node{machine("a", 4, 16), machine("b", 4, 16)},
		Pods: []generate.NewPod{
			needs("p1", 2, 4, 0, recording.Never),
			needs("p2", 2, 4, 0, recording.Never),
			needs("p3", 1, 4, 60, recording.Never),
		},
	}
	o := options(t, "default", "constant:mean=3,max=4", 1)
	got := outcomeOf(t, completed(cluster, generate.Limits{CPU: 2, Memory: 2}, 1), o)
	want := result.Run{
		Outcome: result.Outcome{
			// One node has limits of 4 cores all the time; the other node 4 in the first minute and
			// 6 for 10 minutes: (4 + 60) / 11 / 4.
			CPULimitRatio:     result.Distribution{Mean: (1 + 64.0/44) / 2, P50: (1 + 64.0/44) / 2, P95: 1 + 0.95*20/44, Max: 64.0 / 44},
			CPULimitRatioPeak: 1.5,
			// 8 GiB of 16 GiB on one node, and 16 GiB for 10 minutes on the other node.
			MemoryLimitRatio: result.Distribution{
				Mean: (0.5 + 10.5/11) / 2, P50: (0.5 + 10.5/11) / 2, P95: 0.5 + 0.95*5/11,
				Max: 10.5 / 11,
			},
			MemoryLimitRatioPeak: 1,
			OverloadMinutes:      10, CPUOverloadMinutes: 10, CPUSaturationMinutes: 22, // of all steps
			ThrottledCoreSeconds: 2 * 600,
			LimitedCoreSeconds:   2*2*660 + 1*600,
			// Of 22 steps of a node, 12 demand 4 of 4 cores and 10 demand 6; 12 use 8 of 16 GiB and 10 use 16.
			CPULoad:    result.Distribution{Mean: 1.227, P50: 1, P95: 1.5, Max: 1.5},
			MemoryLoad: result.Distribution{Mean: 0.727, P50: 0.5, P95: 1, Max: 1},
			NodesUsed:  2, NodesUsedPeak: 2,
			Waits: result.Waits{0: 3},
		},
		Scheduled: 3, Reasons: map[string]int{}, Seconds: 660,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })); diff != "" {
		t.Error(diff)
	}
}

// TestPodsWaitForCapacity has one node of 4 cores, which the first pod fills until 100 s. Two more
// pods wait for it. The first to arrive is bound at 100 s and runs for 50 s, its duration in the
// trace; then the second is bound.
func TestPodsWaitForCapacity(t *testing.T) {
	cluster := generate.NewCluster{
		Nodes: []recording.Node{machine("a", 4, 16)},
		Pods: []generate.NewPod{
			needs("first", 4, 4, 0, 100), needs("second", 3, 4, 10, 60), needs("third", 3, 4, 20, 70),
			needs("large", 5, 4, 30, 40), needs("larger", 6, 4, 30, 40),
		},
	}
	got := outcomeOf(t, completed(cluster, generate.Limits{CPU: 1, Memory: 1}, 1), options(t, "default", "constant:mean=1", 1))
	if got.Scheduled != 3 || got.Unschedulable != 2 {
		t.Errorf("%d scheduled, %d not; want 3 and 2", got.Scheduled, got.Unschedulable)
	}
	// 0, 90 and 130 s; and 630 s twice, from 30 until the end at 60 + 600.
	if want := (0 + 90 + 130 + 2*630) / 5.0; got.PendingSeconds.Mean != want || got.PendingSeconds.Max != 630 {
		t.Errorf("pending %+v, want a mean of %v", got.PendingSeconds, want)
	}
	if want := map[string]int{"Insufficient cpu": 2}; !cmp.Equal(got.Reasons, want) {
		t.Errorf("reasons %v, want %v", got.Reasons, want)
	}
}

// TestNodesBoot verifies that a pod that fits no ready node is bound to the node that is
// ready at 300 s.
func TestNodesBoot(t *testing.T) {
	cluster := generate.NewCluster{
		Nodes: []recording.Node{machine("a", 4, 16), machine("b", 8, 16)},
		Pods:  []generate.NewPod{needs("p", 8, 4, 0, recording.Never)},
	}
	in := completed(cluster, generate.Limits{CPU: 1, Memory: 1}, 1)
	in.Nodes[1].Appeared = 300
	got := outcomeOf(t, in, options(t, "default", "constant:mean=1", 1))
	if got.Scheduled != 1 || got.PendingSeconds.Max != 300 || got.NodesUsedPeak != 1 {
		t.Errorf("%+v", got)
	}
}

// TestMetricsDelay schedules with LowRiskOverCommitment on two nodes of 8 cores. Each has a pod
// that requests 2 cores with a limit of 8; the pod on a uses 4 cores, the pod on b none, so that
// only the measured load of the nodes differs. For a pod that arrives before the first reading is
// available, the nodes are equal, and the first node is selected; for a later pod, b is selected.
func TestMetricsDelay(t *testing.T) {
	for name, tc := range map[string]struct {
		arrival int64
		want    string
	}{"before": {119, "a"}, "after": {180, "b"}} {
		t.Run(name, func(t *testing.T) {
			cluster := generate.NewCluster{
				Nodes: []recording.Node{machine("a", 8, 64), machine("b", 8, 64)},
				Pods: []generate.NewPod{
					needs("busy", 2, 1, 0, recording.Never), needs("idle", 2, 1, 0, recording.Never),
					needs("late", 1, 1, tc.arrival, recording.Never),
				},
			}
			in := completed(cluster, generate.Limits{CPU: 4, Memory: 1}, 1)
			in.Pods[1].BaseCPU = 0
			o := options(t, "low-risk", "cpu=constant:mean=2;memory=constant:mean=0.1", 1)
			o.Metrics.DelaySeconds = 120
			r := &recorder{}
			o.Placed = r.placed
			outcomeOf(t, in, o)
			if got := r.nodes["late"]; got != tc.want {
				t.Errorf("bound to %s, want %s (%v)", got, tc.want, r.nodes)
			}
		})
	}
}

// TestSameSeedSameBytes verifies that a generated cluster gives the same bytes for the
// same seed with every profile, and different bytes for different profiles.
func TestSameSeedSameBytes(t *testing.T) {
	spec, err := generate.ParseGenerated("nodes=30,pods=900,fill=1.1,over=1800,life=900,best-effort=0.1")
	must.Succeed(t, err)
	seen := map[string]string{}
	for _, profile := range engine.BuiltInProfiles {
		once := func(seed uint64) string {
			in := generatedInput(spec.Recording(seed, generate.Limits{CPU: 3, Memory: 2, Unlimited: 0.1}, longestTail))
			raw, err := json.Marshal(outcomeOf(t, in, options(t, profile, "bursts:mean=0.8", seed)))
			must.Succeed(t, err)
			return string(raw)
		}
		first := once(7)
		if second := once(7); second != first {
			t.Errorf("%s: the same seed gives\n%s and\n%s", profile, first, second)
		}
		if other := once(8); other == first {
			t.Errorf("%s: different seeds give the same result", profile)
		}
		if same, ok := seen[first]; ok {
			t.Errorf("%s and %s give the same result", same, profile)
		}
		seen[first] = profile
	}
}

// TestInterrupted verifies that an interrupted run returns the outcome until then.
func TestInterrupted(t *testing.T) {
	cluster := generate.NewCluster{Nodes: []recording.Node{machine("a", 8, 64)}}
	for i := range int64(10) {
		cluster.Pods = append(cluster.Pods, needs(string(rune('a'+i)), 1, 1, i*100, recording.Never))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options(t, "default", "constant:mean=1", 1)
	o.Progress = func(done, total int64) {
		if total != 900+600 {
			t.Errorf("progress of %d seconds, want 1500", total)
		}
		if done == 300 {
			cancel()
		}
	}
	got, err := Run(ctx, o.withUsage(t, completed(cluster, generate.Limits{CPU: 1, Memory: 1}, 1)), o.Options)
	must.Succeed(t, err)
	// Pods arrived at 0, 100, 200 and 300 s.
	if !got.Interrupted || got.Seconds != 300 || got.Scheduled != 4 || got.NotArrived != 6 {
		t.Errorf("%+v", got)
	}
}

// recorder records the nodes of pods.
type recorder struct{ nodes map[string]string }

func (r *recorder) placed(pod, node string) {
	if r.nodes == nil {
		r.nodes = map[string]string{}
	}
	r.nodes[pod] = node
}

func TestMonitoring(t *testing.T) {
	m := newMonitoring(result.Metrics{IntervalSeconds: 60, DelaySeconds: 90, WindowSeconds: 120})
	for i, cpu := range []float64{0.2, 0.4, 0.6, 0.8} {
		second := int64(i) * 60
		m.addSample("a", second, cpu, 0.5)
		m.takeReading([]string{"a"}, second)
	}
	// The readings of 0, 60, 120 and 180 s arrive 90 s later.
	for _, second := range []int64{90, 150, 210, 270} {
		if next := m.next(); next != second {
			t.Fatalf("the next reading arrives at %d, want %d", next, second)
		}
		if _, ok := m.receive(second - 1); ok {
			t.Fatalf("a reading has arrived before %d", second)
		}
		reading, ok := m.receive(second)
		if !ok {
			t.Fatalf("no reading has arrived at %d", second)
		}
		if second != 270 {
			continue
		}
		// The samples in the 120 s until 180 s are 0.4, 0.6 and 0.8.
		got := reading.nodes.Nodes["a"]
		if math.Abs(got.CPU.Mean-0.6) > 1e-6 || math.Abs(got.CPU.StdDev-math.Sqrt(0.08/3)) > 1e-6 || got.Memory.StdDev > 1e-6 {
			t.Errorf("%+v", got)
		}
	}
	if m.next() != recording.Never {
		t.Error("a further reading arrives")
	}
}

// TestPodUsageIsMeasured has two pods with requests of 2 cores and 4 GiB, limits of twice that and a demand of 1.5 times the
// requests, on a node of 4 cores and 16 GiB: each gets 2 cores of the 3 that it demands, and uses 6 GiB.
func TestPodUsageIsMeasured(t *testing.T) {
	cluster := generate.NewCluster{
		Nodes: []recording.Node{machine("a", 4, 16)},
		Pods:  []generate.NewPod{needs("p1", 2, 4, 0, recording.Never), needs("p2", 2, 4, 0, recording.Never)},
	}
	for _, reads := range []bool{false, true} {
		o := options(t, "default", "constant:mean=1.5,max=4", 1)
		r := &run{
			input:   o.withUsage(t, completed(cluster, generate.Limits{CPU: 2, Memory: 2}, 1)),
			options: o.Options, stop: t.Context().Err,
			nodeNumbers: map[string]int32{}, queue: newQueue(), monitoring: newMonitoring(o.Metrics), totals: make([]result.Totals, 1),
		}
		must.Succeed(t, r.prepare(t.Context()))
		r.monitoring.readsPods = reads
		r.now = r.nextEvent()
		must.Succeed(t, r.processEvents(t.Context()))
		if _, early := r.monitoring.receive(r.options.Metrics.DelaySeconds - 1); early {
			t.Error("the reading is not delayed")
		}
		got, ok := r.monitoring.receive(r.options.Metrics.DelaySeconds)
		if !ok {
			t.Fatal("no reading")
		}
		var want load.PodReading
		if reads {
			want = load.PodReading{Source: "simulation", Time: recording.Time(0), Window: time.Minute}
			for _, pod := range r.input.Pods {
				want.Pods = append(want.Pods, load.PodUsage{
					Namespace: pod.Object.Namespace, Name: pod.Object.Name, CPU: 2000, Memory: 6 * gib,
				})
			}
		}
		if diff := cmp.Diff(want, got.pods); diff != "" {
			t.Errorf("reads pods: %t: %s", reads, diff)
		}
		if len(got.nodes.Nodes) != 1 {
			t.Errorf("load of %d nodes, want 1", len(got.nodes.Nodes))
		}
	}
}

func TestCompletionsInOrder(t *testing.T) {
	var c completions
	for _, next := range []completion{{30, 1}, {10, 3}, {30, 0}, {10, 2}, {20, 4}} {
		c.add(next.second, next.pod)
	}
	var got []int32
	for {
		pod, ok := c.popUntil(29)
		if !ok {
			break
		}
		got = append(got, pod)
	}
	if want := []int32{2, 3, 4}; !slices.Equal(got, want) || c.next() != 30 {
		t.Errorf("%v, then %d; want %v, then 30", got, c.next(), want)
	}
}

// TestUnmeasured checks the pods that a profile that reads load places before the first reading, which arrives after the interval of a
// minute and the delay of a minute: those that arrive in the first two minutes.
func TestUnmeasured(t *testing.T) {
	cluster := generate.NewCluster{
		Nodes: []recording.Node{machine("a", 64, 256)},
		Pods: []generate.NewPod{
			needs("p1", 1, 1, 0, recording.Never),
			needs("p2", 1, 1, 59, recording.Never),
			needs("p3", 1, 1, 3600, recording.Never),
		},
	}
	for profile, want := range map[string]int{"default": 0, "limits": 0, "low-risk": 2, "predicted": 2} {
		got := outcomeOf(t, completed(cluster, generate.Limits{CPU: 2, Memory: 2}, 1), options(t, profile, "constant:mean=0.5", 1))
		if got.Unmeasured != want || got.Scheduled != 3 {
			t.Errorf("%s: %d of %d pods, want %d of 3", profile, got.Unmeasured, got.Scheduled, want)
		}
	}
}
