package replay

import (
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// nodesOfPods returns the nodes of the pods that run now, by namespace and name.
func (r *run) nodesOfPods() map[string]string {
	nodes := map[string]string{}
	for i := range r.pods {
		if n := r.pods[i].node; n != noNode {
			nodes[resources.Name(r.input.Pods[i].Object)] = r.nodes[n].name
		}
	}
	return nodes
}

// partOf returns the number of the part that has a second, and startOf the first second of a part.
func (r *run) partOf(second int64) int {
	parts := len(r.totals) - 1
	return int(min(max(second, 0)*int64(parts)/r.horizon, int64(parts)-1))
}

func (r *run) startOf(part int) int64 {
	return (int64(part)*r.horizon + int64(len(r.totals)) - 2) / int64(len(r.totals)-1)
}

// count adds to the totals of the run, and to the totals of the part that has a second.
func (r *run) count(second int64, add func(*result.Totals)) {
	add(&r.totals[0])
	if len(r.totals) > 1 {
		add(&r.totals[1+r.partOf(second)])
	}
}

// placedShare returns the share of the time that pods ran on nodes which the scheduler selected in the run. Pods that may run on one node
// only, such as pods of DaemonSets, are not counted.
func (r *run) placedShare() float64 {
	placed, all := 0.0, 0.0
	for i := range r.pods {
		state, p := &r.pods[i], &r.input.Pods[i]
		if !state.hadNode || resources.IsNodeBound(p.Object) || resources.HasFixedNode(p.Object) {
			continue
		}
		end := r.horizon
		if p.Duration != recording.Never {
			end = min(state.end, end)
		}
		seconds := float64(max(end-state.placed, 0))
		if all += seconds; state.scheduled && !(p.Recorded != nil && p.Recorded.Fixed) {
			placed += seconds
		}
	}
	return result.Ratio(placed, all)
}
