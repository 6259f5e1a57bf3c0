package result

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// TestOverloadTimes has a node of 4 cores and 10 bytes. In the first step the pods a and b, with equal weights, demand 3 cores each, b
// 1 within its limit: a gets 3 and b 1, so no pod lacks CPU. In the second step a demands 4 and gets 3. In the third step the pods
// use 12 bytes and b, which uses most, is killed.
func TestOverloadTimes(t *testing.T) {
	workloads := []resources.Workload{{Namespace: "x", Kind: "ReplicaSet", Name: "a"}, {Namespace: "x", Kind: "Job", Name: "b"}}
	times, evaluator := NewOverloadTimes(), Evaluator{}
	a, b := Demand{CPURequest: 1000, CPU: 3000}, Demand{CPURequest: 1000, CPULimit: 1000, CPU: 3000}
	hungry, small, large := a, a, b
	hungry.CPU = 4000
	small.Memory, large.Memory = 2, 10
	for _, pods := range [][]Demand{{a, b}, {hungry, b}, {small, large}, {small, large}} {
		step, granted, victims := evaluator.Step(Capacity{CPU: 4000, Memory: 10, MachineMemory: 10}, pods)
		times.Add("n", 60, step, pods, granted, victims, func(i int) resources.Workload { return workloads[i] })
	}
	want := &Overloaded{
		Nodes:     []OverloadTime{{Name: "n", Minutes: 3}},
		Workloads: []OverloadTime{{Name: "x/b", Kind: "Job", Minutes: 2}, {Name: "x/a", Kind: "ReplicaSet", Minutes: 1}},
	}
	if diff := cmp.Diff(want, times.Result()); diff != "" {
		t.Error(diff)
	}
	if (*OverloadTimes)(nil).Result() != nil {
		t.Error("nil has a result")
	}
}

// TestSumOverloaded adds two runs with 0 to 49 minutes: names are bounded, and all others are counted.
func TestSumOverloaded(t *testing.T) {
	var times []OverloadTime
	for i := range 50 {
		times = append(times, OverloadTime{Name: fmt.Sprint(i), Minutes: float64(i)})
	}
	run := Run{Overloaded: &Overloaded{Nodes: times}}
	sum := SumOverloaded([]Run{run, {}, run})
	if first := sum.Nodes; len(first) != MaxOverloaded || sum.MoreNodes != 30 || first[0] != (OverloadTime{Name: "49", Minutes: 98}) ||
		first[19].Name != "30" || len(sum.Workloads) != 0 {
		t.Errorf("%+v", sum)
	}
}
