package slack

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	algo "github.com/plimsoll-k8s/plimsoll/internal/algo/slack"
)

// Plan is which placeholders a policy comes to.
type Plan struct {
	// Policy is the policy's name.
	Policy string
	// Base is what the rate is a part of, Target what of it is to be held, Total
	// what the placeholders request together.
	Base, Target, Total v1.ResourceList
	// Groups are equal placeholders: for the biggest pod first, then the rest of the
	// rate, then those of workloads, which come on top of it.
	Groups []Group
	// Feasible: the groups of the rate are at least the Target, there is room for
	// the biggest pod, and workloads have what they want. Reasons say why not, or
	// what is held beyond the target.
	Feasible bool
	Reasons  []string
}

// Group is a number of equal placeholders.
type Group struct {
	// Name of the group, unique in the cluster.
	Name string
	// Head: for the biggest pod.
	Head bool
	// Requests of one placeholder, and how many there are.
	Requests v1.ResourceList
	Count    int64
	// Mirror is the workload whose pods the placeholders are like, nil for those of
	// the rate.
	Mirror *Workload
}

// Compute returns the plan of a policy for a cluster as it stands, without
// regard to what was held before; workloads are those that it is to mirror. The
// policy's defaults are filled in. An error is one of the policy.
func Compute(policy *v1alpha1.ResourceSlack, nodes []*v1.Node, pods []*v1.Pod, workloads []Workload, now time.Time) (Plan, error) {
	tracker, err := NewTracker(policy)
	if err != nil {
		return Plan{}, err
	}
	for _, node := range nodes {
		tracker.SetNode(node, now)
	}
	for _, pod := range pods {
		tracker.SetPod(pod)
	}
	tracker.SetWorkloads(workloads)
	return tracker.Next(now), nil
}

// policyOf returns a policy as the planner sees it.
func policyOf(resource *v1alpha1.ResourceSlack) (algo.Policy, error) {
	spec := &resource.Spec
	if err := spec.Validate(); err != nil {
		return algo.Policy{}, err
	}
	if len(resource.Name) > v1alpha1.MaxNameLength {
		return algo.Policy{}, fmt.Errorf("metadata.name: found %d characters, at most %d are allowed: the names of placeholders are made of it", len(resource.Name), v1alpha1.MaxNameLength)
	}
	rate, err := v1alpha1.ParseRate(spec.MinRate)
	if err != nil {
		return algo.Policy{}, err
	}
	policy := algo.Policy{Rate: rate, Granularity: int64(*spec.Granularity), CoverBiggest: *spec.CoverBiggestPod}
	if spec.Base == v1alpha1.BaseAllocatable {
		policy.Base = algo.Allocatable
	}
	if spec.MaxPlaceholders != nil {
		policy.MaxPlaceholders = int64(*spec.MaxPlaceholders)
	}
	return policy, nil
}

// The last words of the names of groups.
const (
	headSuffix = "-head"
	rateSuffix = "-rate"
)

// planOf returns a plan of the planner in the terms of Kubernetes.
func planOf(name string, plan algo.Plan) Plan {
	out := Plan{
		Policy: name, Base: listOf(plan.Base), Target: listOf(plan.Target), Total: listOf(plan.Total),
		Feasible: plan.Feasible, Reasons: plan.Reasons,
	}
	// Whatever policies are called, no two groups have the same name: the last word
	// is the group's, all before it the policy's.
	for i, head := range plan.Head {
		group := Group{Name: name + headSuffix, Head: true, Requests: listOf(head.Size), Count: head.Count}
		if i > 0 {
			group.Name += fmt.Sprint(i + 1)
		}
		out.Groups = append(out.Groups, group)
	}
	if plan.Rest.Count > 0 {
		out.Groups = append(out.Groups, Group{Name: name + rateSuffix, Requests: listOf(plan.Rest.Size), Count: plan.Rest.Count})
	}
	return out
}

// listOf returns amounts as Kubernetes writes them.
func listOf(a algo.Amounts) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(a[algo.CPU], resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(a[algo.Memory], resource.BinarySI),
	}
}
