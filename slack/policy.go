package slack

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Plan states which placeholders a policy requires.
type Plan struct {
	// Policy is the name of the policy.
	Policy string
	// Base is the amount that the rate refers to, Target the part of it to hold, and Total the sum of
	// the requests of all placeholders.
	Base, Target, Total v1.ResourceList
	// Groups are groups of equal placeholders: for the biggest pod, then for the rest of the rate, then
	// mirrors of workloads, which are not part of the rate.
	Groups []Group
	// Feasible reports whether the groups of the rate reach Target, and the biggest pod is covered. Reasons say
	// why not, or by how much a feasible plan exceeds the target.
	Feasible bool
	Reasons  []string
	// MirrorsFeasible reports whether all workloads have the placeholders that they request. MirrorReasons say
	// why not, or how their placeholders differ from what they request.
	MirrorsFeasible bool
	MirrorReasons   []string
	// NoNodes reports whether no node is in the pool of a policy that wants placeholders. The groups of
	// the rate are then unchanged from the last plan.
	NoNodes bool
	// NodeShape is the capacity, after DaemonSet pods, of the largest node that the pool has or had last, nil if it is not known.
	NodeShape v1.ResourceList
	// CoolDown reports whether the groups of the rate have more placeholders than required because a cool-down is
	// not over. Reasons say when it ends.
	CoolDown bool
	// Spread is the promise per domain, nil if the policy has no spread.
	Spread *Spread
	// Schedule states which schedule of the policy the plan is for, nil if the policy has none.
	Schedule *v1alpha1.ScheduleStatus
}

// Group is a number of equal placeholders.
type Group struct {
	// Name of the group, unique in the cluster.
	Name string
	// Head reports whether the group covers the biggest pod.
	Head bool
	// Devices are the devices of the pool that one placeholder of the rate requests, such as "2 nvidia.com/gpu", empty for
	// placeholders without devices.
	Devices string
	// NodeSelector has the label of the domain of spec.spread that the placeholders are in, nil for any node of the pool.
	NodeSelector map[string]string
	// Requests are the requests of one placeholder.
	Requests v1.ResourceList
	// Count is the number of placeholders.
	Count int64
	// Mirror is the workload that the placeholders mirror, nil for placeholders of the rate.
	Mirror *Workload
}

// Spread is the promise of a plan per domain.
type Spread struct {
	// TopologyKey is the label whose values are the domains.
	TopologyKey string
	// Domains are the values of the usable nodes of the pool, sorted.
	Domains []string
	// PerDomain is the number of placeholders of the rate that each domain has at least, without those for the biggest pod.
	PerDomain int64
}

// placeholders returns the number of placeholders.
func (p *Plan) placeholders() (sum int64) {
	for _, group := range p.Groups {
		sum += group.Count
	}
	return sum
}

// fail marks the plan as not feasible for a reason.
func (p *Plan) fail(format string, args ...any) {
	p.Feasible = false
	p.Reasons = append(p.Reasons, fmt.Sprintf(format, args...))
}

// ratePolicyOf returns a valid policy with the rate and minimum that apply, in the terms of the planner.
func ratePolicyOf(spec *v1alpha1.ResourceSlackSpec, minRate string, minimum *v1alpha1.Amount) ratePolicy {
	rate, _ := v1alpha1.ParseRate(minRate) // valid
	perDomain := int64(0)
	if spec.Spread != nil {
		perDomain = int64(*spec.Spread.MinPerDomain)
	}
	return ratePolicy{
		Rate: rate, OfAllocatable: spec.Base == v1alpha1.BaseAllocatable, Granularity: int64(*spec.Granularity),
		CoverBiggest: *spec.CoverBiggestPod, MaxPlaceholders: int64(*spec.MaxPlaceholders),
		Floor: boundOf(minimum), Ceiling: boundOf(spec.Maximum), MinPerDomain: perDomain,
	}
}

// boundOf returns an amount of the API, which may be nil, in the terms of the planner.
func boundOf(amount *v1alpha1.Amount) (b bound) {
	if amount == nil {
		return b
	}
	b.Amounts.CPU = resources.CPUResource.Amount(ptr.Deref(amount.CPU, resource.Quantity{}))
	b.Amounts.Memory = resources.MemoryResource.Amount(ptr.Deref(amount.Memory, resource.Quantity{}))
	return bound{bounded(b.Amounts), int64(ptr.Deref(amount.Placeholders, 0))}
}

// Suffixes of the names of groups.
const (
	headSuffix = "-head"
	rateSuffix = "-rate"
)

// planOf returns a plan of the planner in the terms of the API.
func planOf(name string, plan ratePlan) Plan {
	out := Plan{
		Policy: name, Base: listOf(plan.Base), Target: listOf(plan.Target), Total: listOf(plan.Total),
		Feasible: plan.Feasible, Reasons: slices.Clone(plan.Reasons), MirrorsFeasible: true, NoNodes: plan.NoNodes,
	}
	// Group names are unique: the suffix identifies the group, the part before it the policy.
	for i, head := range plan.Head {
		group := Group{Name: name + headSuffix, Head: true, Requests: listOf(head), Count: 1}
		if i > 0 {
			group.Name += fmt.Sprint(i + 1)
		}
		out.Groups = append(out.Groups, group)
	}
	if plan.Rest.Count > 0 {
		out.Groups = append(out.Groups, Group{Name: name + rateSuffix, Requests: listOf(plan.Rest.Requests), Count: plan.Rest.Count})
	}
	return out
}

// listOf returns amounts as a resource list.
func listOf(a resources.Amounts) v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(a.CPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(a.Memory, resource.BinarySI),
	}
	for name, amount := range a.Extended.All() {
		list[name] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return list
}

// addTimes returns the sum of a list and n times another list.
func addTimes(list, added v1.ResourceList, n int64) v1.ResourceList {
	sum := list.DeepCopy()
	if sum == nil {
		sum = v1.ResourceList{}
	}
	for name, quantity := range added {
		quantity = quantity.DeepCopy()
		quantity.Mul(n)
		if before, ok := sum[name]; ok {
			quantity.Add(before)
		}
		sum[name] = quantity
	}
	return sum
}

// activeSchedule is the schedule of a policy, or none, that applies from one time to another.
type activeSchedule struct {
	spec     *v1alpha1.ResourceSlackSpec
	calendar v1alpha1.Calendar
	// from and until are the time of the last evaluation and of the next change, until zero if nothing changes.
	from, until time.Time
	status      v1alpha1.ScheduleStatus
	// policy is the policy while the schedule applies.
	policy ratePolicy
}

// Validate returns the errors of a policy with defaults: what the API server refuses by the CRD, or else what the CRD cannot express.
func Validate(policy *v1alpha1.ResourceSlack) error {
	object := *policy
	object.Status, object.ManagedFields = v1alpha1.ResourceSlackStatus{}, nil
	if errs := crd.ValidateResourceSlack(&object); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return policy.Spec.Validate()
}

// newSchedule returns the schedule of a policy with defaults, which must be advanced. It returns an error if the policy is invalid.
func newSchedule(policy *v1alpha1.ResourceSlack) (s activeSchedule, err error) {
	if err := Validate(policy); err != nil {
		return s, err
	}
	calendar, _ := policy.Spec.Calendar() // valid
	return activeSchedule{spec: &policy.Spec, calendar: calendar}, nil
}

// advance evaluates the schedules at a time, unless an earlier evaluation remains valid until the next change. The clock may be set back.
func (s *activeSchedule) advance(now time.Time) {
	now = now.Round(0) // schedules follow the wall clock
	if !s.from.IsZero() && !now.Before(s.from) && (s.until.IsZero() || now.Before(s.until)) {
		return
	}
	active := s.calendar.At(now)
	until, next, changes := s.calendar.Next(now)
	s.from, s.until, s.status = now, until, v1alpha1.ScheduleStatus{}
	s.status.MinRate, s.status.Minimum = s.spec.Effective(active)
	if active != v1alpha1.NoSchedule {
		s.status.Active = new(int32(active))
	}
	if changes {
		s.status.NextChange = &metav1.Time{Time: until.UTC()}
		s.status.NextMinRate, s.status.NextMinimum = s.spec.Effective(next)
	}
	s.policy = ratePolicyOf(s.spec, s.status.MinRate, s.status.Minimum)
}
