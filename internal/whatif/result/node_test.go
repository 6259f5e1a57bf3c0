package result

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

const gib = 1 << 30

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func allNear(a, b []float64) bool { return slices.EqualFunc(a, b, near) }

// bisect returns the amounts by bisection of the level.
func bisect(capacity float64, want, weight []float64) []float64 {
	got := func(level float64) (amounts []float64, sum float64) {
		for i := range want {
			amount := min(want[i], level*weight[i])
			amounts, sum = append(amounts, amount), sum+amount
		}
		return amounts, sum
	}
	low, high := 0.0, 1e12
	for range 300 {
		middle := (low + high) / 2
		if _, sum := got(middle); sum > capacity {
			high = middle
		} else {
			low = middle
		}
	}
	amounts, _ := got(low)
	return amounts
}

// TestShareIsFair verifies that the amounts equal the amounts found by bisection, that no pod gets
// more than its demand, that all capacity is used if the demand exceeds it, and that pods that get
// less than their demand get the same amount per weight.
func TestShareIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e5),
			rapid.Map(rapid.IntRange(0, 20), func(n int) float64 { return float64(n) * 500 }))
		want := rapid.SliceOfN(amount, 0, 60).Draw(t, "want")
		weight := make([]float64, len(want))
		for i := range weight {
			weight[i] = max(amount.Draw(t, "weight"), minWeight)
		}
		capacity := amount.Draw(t, "capacity")
		got, rest := make([]float64, len(want)), make([]int32, len(want))
		level := outcomeShare(capacity, want, weight, got, rest)
		var demand, sum float64
		for i := range want {
			demand, sum = demand+want[i], sum+got[i]
			if got[i] < 0 || got[i] > want[i] {
				t.Fatalf("pod %d has a demand of %v and gets %v", i, want[i], got[i])
			}
			if got[i] < want[i] && !near(got[i], level*weight[i]) {
				t.Fatalf("pod %d of weight %v gets %v at level %v", i, weight[i], got[i], level)
			}
		}
		if !near(sum, min(demand, capacity)) {
			t.Fatalf("sum %v of capacity %v, demand %v", sum, capacity, demand)
		}
		for i, amount := range bisect(capacity, want, weight) {
			if math.Abs(got[i]-amount) > 1e-6*max(1, capacity) {
				t.Fatalf("pod %d gets %v, by bisection %v", i, got[i], amount)
			}
		}
	})
}

func TestOOMScoreAdjustment(t *testing.T) {
	for name, tc := range map[string]struct {
		class            v1.PodQOSClass
		request, machine float64
		want             int
	}{
		"guaranteed":  {v1.PodQOSGuaranteed, 4 * gib, 16 * gib, -997},
		"best effort": {v1.PodQOSBestEffort, 0, 16 * gib, 1000},
		// 1000 - 1000 x 4/16
		"a quarter": {v1.PodQOSBurstable, 4 * gib, 16 * gib, 750},
		// 1000 - floor(1000/3) = 1000 - 333
		"a third":         {v1.PodQOSBurstable, gib, 3 * gib, 667},
		"no request":      {v1.PodQOSBurstable, 0, 16 * gib, 999},
		"all":             {v1.PodQOSBurstable, 16 * gib, 16 * gib, 3},
		"no machine":      {v1.PodQOSBurstable, 1, 0, 3},
		"all but a tenth": {v1.PodQOSBurstable, 9, 10, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := oomScoreAdjustment(tc.class, tc.request, tc.machine); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestStep(t *testing.T) {
	node := Capacity{CPU: 4000, Memory: 10 * gib, MachineMemory: 10 * gib}
	for name, tc := range map[string]struct {
		pods    []Demand
		want    Step
		got     []float64
		victims []int
	}{
		"no pods": {nil, Step{}, []float64{}, []int{}},
		"all fits": {
			[]Demand{{CPURequest: 1000, MemoryRequest: gib, CPU: 1500, Memory: 2 * gib, Class: v1.PodQOSBurstable}},
			Step{CPUDemand: 1500, CPUGranted: 1500, MemoryDemand: 2 * gib, MemoryKept: 2 * gib, CPULimits: 1000, MemoryLimits: gib},
			[]float64{1500},
			[]int{},
		},
		// The demand is 3000 and 5 GiB, the limits are 2000 and 4 GiB.
		"limited": {
			[]Demand{{
				CPURequest: 1000, CPULimit: 2000, MemoryRequest: 2 * gib, MemoryLimit: 4 * gib, CPU: 3000, Memory: 5 * gib,
				Class: v1.PodQOSBurstable,
			}},
			Step{
				CPUDemand: 2000, CPUGranted: 2000, ThrottledByLimit: 1000, MemoryDemand: 4 * gib, MemoryKept: 4 * gib, CPULimits: 2000,
				MemoryLimits: 4 * gib,
			},
			[]float64{2000},
			[]int{},
		},
		// A demand of 3000 + 3000 on 4000 with the weights 1000 and 3000: the level is 1, the
		// pods get 1000 and 3000, 2000 are missing.
		"by requests": {
			[]Demand{{CPURequest: 1000, CPU: 3000}, {CPURequest: 3000, CPU: 3000}},
			Step{CPUDemand: 6000, CPUGranted: 4000, ThrottledByNode: 2000, CPULimits: 4000},
			[]float64{1000, 3000},
			[]int{},
		},
		// With the weights 1.953125 and 1998.046875 the pods get 3.90625 and 3996.09375 of 4000.
		"a pod without a request": {
			[]Demand{{CPU: 5000}, {CPURequest: 1998.046875, CPU: 5000}},
			Step{CPUDemand: 10000, CPUGranted: 4000, ThrottledByNode: 6000, CPULimits: 1998.046875},
			[]float64{3.90625, 3996.09375},
			[]int{},
		},
		// 4 + 1 + 7 of 10 GiB. In GiB the badness of the guaranteed pod is 4 - 9.97, of the
		// best-effort pod 1 + 10, of the burstable pod 7 + (1 - 0.2) x 10 = 15, the highest: it is
		// the victim, and 5 GiB remain.
		"highest usage beyond the request": {
			[]Demand{
				{MemoryRequest: 4 * gib, Memory: 4 * gib, Class: v1.PodQOSGuaranteed},
				{Memory: gib, Class: v1.PodQOSBestEffort},
				{MemoryRequest: 2 * gib, Memory: 7 * gib, Class: v1.PodQOSBurstable},
			},
			Step{MemoryDemand: 12 * gib, MemoryKept: 5 * gib, MemoryLimits: 6 * gib, Victims: 1},
			[]float64{0, 0, 0},
			[]int{2},
		},
		// The badness is 2 + 10 = 12 for the best-effort pod, 5 + 5 = 10 for the burstable pod and
		// 6 - 9.97 for the guaranteed pod: of 13 GiB 11 remain without the best-effort pod, 6
		// without the best-effort and the burstable pod.
		"several victims": {
			[]Demand{
				{MemoryRequest: 6 * gib, Memory: 6 * gib, Class: v1.PodQOSGuaranteed},
				{MemoryRequest: 5 * gib, Memory: 5 * gib, Class: v1.PodQOSBurstable},
				{Memory: 2 * gib, Class: v1.PodQOSBestEffort},
			},
			Step{MemoryDemand: 13 * gib, MemoryKept: 6 * gib, MemoryLimits: 11 * gib, Victims: 2},
			[]float64{0, 0, 0},
			[]int{2, 1},
		},
		// Of pods with equal badness the first is the victim.
		"equal pods": {
			[]Demand{{Memory: 6 * gib, Class: v1.PodQOSBestEffort}, {Memory: 6 * gib, Class: v1.PodQOSBestEffort}},
			Step{MemoryDemand: 12 * gib, MemoryKept: 6 * gib, Victims: 1},
			[]float64{0, 0},
			[]int{0},
		},
		"a pod too large for the node": {
			[]Demand{{Memory: 16 * gib, Class: v1.PodQOSGuaranteed, MemoryRequest: 16 * gib}, {Class: v1.PodQOSBestEffort}},
			Step{MemoryDemand: 16 * gib, MemoryKept: 0, MemoryLimits: 16 * gib, Victims: 1},
			[]float64{0, 0},
			[]int{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var e Evaluator
			step, got, victims := e.Step(node, tc.pods)
			if step != tc.want || !allNear(got, tc.got) || !slices.Equal(victims, tc.victims) {
				t.Errorf("%+v\n%v, victims %v, want\n%+v\n%v, victims %v", step, got, victims, tc.want, tc.got, tc.victims)
			}
			if step.Overloaded() != (step.cpuOverloaded() || step.memoryOverrun()) {
				t.Error("Overloaded differs from cpuOverloaded or memoryOverrun")
			}
		})
	}
}

// drawPod draws a pod with integer amounts.
func drawPod(t *rapid.T) Demand {
	amount := func(label string, unit, most int) float64 {
		return float64(unit * rapid.IntRange(0, most).Draw(t, label))
	}
	p := Demand{
		CPURequest: amount("cpuRequest", 100, 20), MemoryRequest: amount("memoryRequest", gib/8, 20), CPU: amount("cpu", 50, 100),
		Memory: amount("memory", gib/16, 100),
	}
	if rapid.Bool().Draw(t, "limited") {
		p.CPULimit, p.MemoryLimit = p.CPURequest+amount("cpuLimit", 100, 20), p.MemoryRequest+amount("memoryLimit", gib/8, 20)
	}
	p.Class = rapid.SampledFrom([]v1.PodQOSClass{v1.PodQOSBestEffort, v1.PodQOSBurstable, v1.PodQOSGuaranteed}).Draw(t, "class")
	return p
}

// TestStepProperties verifies that the remaining memory fits, that no victim is unnecessary, that
// no remaining pod has a higher badness than the last victim, and that a used Evaluator returns
// the same as a new one.
func TestStepProperties(t *testing.T) {
	var used Evaluator
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.SliceOfN(rapid.Custom(drawPod), 0, 40).Draw(t, "pods")
		node := Capacity{
			CPU:    float64(rapid.IntRange(0, 64).Draw(t, "cpu") * 1000),
			Memory: float64(rapid.IntRange(0, 64).Draw(t, "memory") * gib),
		}
		node.MachineMemory = node.Memory + gib
		step, got, victims := used.Step(node, pods)
		fresh, freshGot, freshVictims := new(Evaluator).Step(node, pods)
		if step != fresh || !slices.Equal(got, freshGot) || !slices.Equal(victims, freshVictims) {
			t.Fatalf("%+v %v %v, fresh evaluator %+v %v %v", step, got, victims, fresh, freshGot, freshVictims)
		}
		if step.MemoryKept > node.Memory || step.CPUGranted > node.CPU*(1+1e-12) || step.CPUGranted > step.CPUDemand*(1+1e-12) {
			t.Fatalf("%+v on %+v", step, node)
		}
		var kept, last float64
		if len(victims) > 0 {
			v := &pods[victims[len(victims)-1]]
			last = badness(v, node.MachineMemory)
			if step.MemoryKept+v.MemoryUse() <= node.Memory {
				t.Fatalf("the last of the victims %v is unnecessary", victims)
			}
		}
		for i := range pods {
			if slices.Contains(victims, i) {
				continue
			}
			kept += pods[i].MemoryUse()
			if len(victims) > 0 && pods[i].MemoryUse() > 0 && badness(&pods[i], node.MachineMemory) > last {
				t.Fatalf("pod %d has a higher badness than the last of the victims %v", i, victims)
			}
		}
		if kept != step.MemoryKept {
			t.Fatalf("%v kept, the sum is %v", step.MemoryKept, kept)
		}
	})
}

// cluster generates a cluster of equal nodes with a mean CPU demand of their capacity, so that
// about half of the nodes are overloaded.
func cluster(nodes, podsPerNode int) [][]Demand {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([][]Demand, nodes)
	for n := range all {
		all[n] = make([]Demand, podsPerNode)
		for i := range all[n] {
			request := 32000 / float64(podsPerNode) * r.ExpFloat64()
			all[n][i] = Demand{
				CPURequest: request, CPULimit: 2 * request, CPU: request * 2 * r.Float64(),
				MemoryRequest: gib, MemoryLimit: 2 * gib, Memory: gib * 2 * r.Float64(), Class: v1.PodQOSBurstable,
			}
		}
	}
	return all
}

func TestStepDoesNotAllocate(t *testing.T) {
	pods := cluster(1, 100)[0]
	var e Evaluator
	node := Capacity{CPU: 16000, Memory: 64 * gib, MachineMemory: 64 * gib}
	e.Step(node, pods)
	if n := testing.AllocsPerRun(100, func() { e.Step(node, pods) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
