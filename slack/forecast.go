package slack

import (
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Forecast computes the placeholders of a policy like a Tracker, from sums of a pool of equal nodes instead of its nodes and pods: for
// simulations of many policies. Mirrors of workloads are left out.
type Forecast struct {
	schedule activeSchedule
	planner  planner
	// coolDownEnd is the end of the cool-down in seconds, 0 if there is none.
	coolDownEnd int64
}

// PoolSums are the sums of a pool that a Forecast reads. Amounts are CPU and memory.
type PoolSums struct {
	// Requested is the sum and Largest the maximum of each resource of the requests of the pods with a node.
	Requested, Largest resources.Amounts
	// Node is the capacity of a node, and Nodes the number of nodes, at least 1.
	Node  resources.Amounts
	Nodes int
}

// NewForecast returns the forecast of a policy. It returns an error if the policy is invalid.
func NewForecast(policy *v1alpha1.ResourceSlack) (*Forecast, error) {
	policy = policy.DeepCopy()
	policy.Spec.Default()
	schedule, err := newSchedule(policy)
	return &Forecast{schedule: schedule}, err
}

// IsDue reports whether the placeholders may change at a time although the pool has not changed.
func (f *Forecast) IsDue(now time.Time) bool {
	return f.schedule.advance(now) || f.coolDownEnd != 0
}

// Next returns the placeholders at a time.
func (f *Forecast) Next(now time.Time, pool PoolSums) (placeholders []Placeholders) {
	f.schedule.advance(now)
	plan := f.planner.Next(poolTotals{
		Requested: pool.Requested, Allocatable: pool.Node.Multiply(int64(pool.Nodes)), Nodes: pool.Nodes, Matching: pool.Nodes,
		MaxPodRequests: pool.Largest, LargestByCPU: pool.Largest, LargestByMemory: pool.Largest, Shapes: []resources.Amounts{pool.Node},
	}, f.schedule.policy, now.Unix())
	f.coolDownEnd = plan.CoolDownEnd
	for _, head := range plan.Head {
		placeholders = append(placeholders, Placeholders{head, 1})
	}
	if plan.Rest.Count > 0 {
		placeholders = append(placeholders, plan.Rest)
	}
	return placeholders
}
