package predict

import (
	"fmt"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// TestShiftWithoutMeasurement has a node with ten pods that use 2000 each, while the other pods of their workload use 500, and whose load
// is measured for an hour. The node is expected to use about 20000. Then only the usage of pods is measured: without eight of the ten pods,
// and later without any, the node is expected to use about 4000, and nothing. It is the same if the load of nodes is never measured.
func TestShiftWithoutMeasurement(t *testing.T) {
	for _, isMeasured := range []bool{true, false} {
		testShift(t, isMeasured)
	}
}

func testShift(t *testing.T, isMeasuredFirst bool) {
	l, states, second := NewLearner(Options{HistoryWeight: 1, HalfLife: DefaultHalfLife}), podStates{}, 0.0
	observe := func(readings, hot int, isMeasured bool) float64 {
		var model *Model
		var pods []Declared
		for range readings {
			second += 60
			nodes := make([]NodeReading, 5)
			pods = pods[:0]
			for i := range nodes {
				n := &nodes[i]
				n.Name, n.Measured[CPU].Known = fmt.Sprint(i), isMeasured
				count, used := 10, 500.0
				if i == 0 {
					count, used = hot, 2000
				}
				for j := range count {
					p := PodReading{State: states.of(fmt.Sprint(i, " ", j)), Seen: 1, IsUsed: true}
					p.Workload, p.Amounts[CPU].Request, p.Used[CPU] = resources.Workload{Name: "w"}.Key(), 1000, used
					n.Measured[CPU].Mean += used
					n.Pods = append(n.Pods, p)
					if i == 0 {
						pods = append(pods, p.Declared)
					}
				}
			}
			model = l.Observe(&Reading{Second: second, Window: 60, Nodes: nodes})
		}
		use := model.Node("0", pods)
		return use.Sums[CPU].Mean
	}
	for _, step := range []struct {
		name       string
		hot        int
		isMeasured bool
		low, high  float64
	}{
		{"first", 10, isMeasuredFirst, 18_000, 22_000},
		{"not measured", 10, false, 18_000, 22_000},
		{"two pods remain", 2, false, 3_000, 5_000},
		{"no pod remains", 0, false, 0, 1},
	} {
		if got := observe(60, step.hot, step.isMeasured); got < step.low || got > step.high {
			t.Errorf(
				"measured first: %t, %s: expected to use %.0f, want from %.0f to %.0f",
				isMeasuredFirst,
				step.name,
				got,
				step.low,
				step.high,
			)
		}
	}
}
