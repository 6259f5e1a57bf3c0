package recommend

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// slackChoice is an amount of slack.
type slackChoice struct {
	name   string
	policy *v1alpha1.ResourceSlack // nil for none
}

// noSlack is the name of no slack.
const noSlack = "no slack"

// slackInForce returns the slack of the policy in force.
func (s *search) slackInForce() slackChoice {
	if !s.IsInForce {
		return slackChoice{name: noSlack}
	}
	return slackChoice{name: "slack in force", policy: s.Policy}
}

// slackCandidates returns pairs with the amounts of slack to try: none, the lowest rate with which the pods of the first pair that needs
// slack have nodes in time, and a minimum. Where pods have nodes in time without slack, it can only cost.
func (s *search) slackCandidates(pairs []*candidate) ([]*candidate, error) {
	all := slices.Concat(pairs, slices.DeleteFunc(s.raced, func(c *candidate) bool { return slices.Contains(pairs, c) }))
	if !s.triesSlack {
		return all, nil
	}
	choices := []slackChoice{{name: noSlack}}
	for i, pair := range pairs {
		if pair.slack.policy == nil && s.isInTime(pair) {
			continue
		}
		s.Report(fmt.Sprintf("slack for %s, %s (%d of %d)", pair.profile.Name, pair.requests.Name, i+1, len(pairs)))
		if len(choices) == 1 {
			tried, rate, err := s.searchRate(pair)
			if err != nil {
				return nil, err
			}
			if all = append(all, tried...); rate != nil {
				choices = append(choices, *rate)
			}
		}
		minimum, err := s.minimum(pair.requests)
		if err != nil {
			return nil, err
		}
		for _, choice := range append(choices, minimum) {
			c := &candidate{profile: pair.profile, requests: pair.requests, slack: choice}
			if !slices.ContainsFunc(all, c.isSame) {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// isInTime reports whether the percentage of the pods of the goal has a node in time.
func (s *search) isInTime(c *candidate) bool {
	return s.goals.wait(sum(partsOf(c, s.order))) <= s.goals.Wait
}

// searchRate simulates a pair with rates of slack in whole percent, at most nine, and returns these candidates and the lowest rate with
// which pods have nodes in time, nil if none does: it increases the rate fourfold, and then bisects the last step up to a fifth.
func (s *search) searchRate(pair *candidate) (tried []*candidate, found *slackChoice, err error) {
	try := func(percent int) (bool, error) {
		c := &candidate{profile: pair.profile, requests: pair.requests, slack: s.rate(percent)}
		tried = append(tried, c)
		if err := s.simulate([]*candidate{c}, s.order...); err != nil {
			return false, err
		}
		isInTime := s.isInTime(c)
		if isInTime {
			found = &c.slack
		}
		return isInTime, nil
	}
	rates := []int{1, 4, 16, 64, 200}
	if pair.slack.policy != nil {
		rates = slices.Insert(rates, 0, 0)
	}
	low, high := 0, 0
	for _, high = range rates {
		if isInTime, err := try(high); err != nil || isInTime {
			if err != nil {
				return nil, nil, err
			}
			break
		}
		low = high
	}
	for found != nil && high-low > max(1, low/4) {
		middle := int(math.Round(math.Sqrt(float64(low * high))))
		switch isInTime, err := try(middle); {
		case err != nil:
			return nil, nil, err
		case isInTime:
			high = middle
		default:
			low = middle
		}
	}
	return tried, found, nil
}

// rate returns slack with a rate in percent, none for 0.
func (s *search) rate(percent int) slackChoice {
	if percent == 0 {
		return slackChoice{name: noSlack}
	}
	text := fmt.Sprintf("%d%%", percent)
	return slackChoice{name: "slack rate " + text, policy: s.policy(text)}
}

// policy returns the policy to change with a rate, without minimum and schedules.
func (s *search) policy(rate string) *v1alpha1.ResourceSlack {
	policy := s.Policy.DeepCopy()
	policy.Spec.MinRate, policy.Spec.Minimum, policy.Spec.Schedules = rate, nil, nil
	return policy
}

// minimum returns slack with a minimum: the percentile of the goal of the requests that arrive within the time in which nodes are ready.
func (s *search) minimum(r *rule) (slackChoice, error) {
	source := s.Source
	source.Recording, source.Requests = s.fitted, r.table
	in, err := source.Input()
	if err != nil {
		return slackChoice{}, err
	}
	outside := map[string]bool{}
	for _, n := range in.Nodes {
		outside[n.Object.Name] = !slack.InPool(n.Object, s.Policy.Spec.Pool)
	}
	pods := slices.DeleteFunc(in.Pods, func(p recording.InputPod) bool {
		return p.Object.Spec.NodeName != "" || resources.IsNodeBound(p.Object) || p.Recorded != nil && outside[p.Recorded.Node]
	})
	slices.SortStableFunc(pods, func(a, b recording.InputPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	var boot int64
	for _, g := range s.autoscaler.Groups {
		boot = max(boot, g.Boot+s.autoscaler.Loop.Interval)
	}
	var cpu, memory []int64
	var used resources.Amounts
	first := 0
	for i := range pods {
		for used = used.Add(pods[i].Requests); pods[first].Arrival < pods[i].Arrival-boot; first++ {
			used = used.Minus(pods[first].Requests)
		}
		cpu, memory = append(cpu, used.CPU), append(memory, used.Memory)
	}
	a := &v1alpha1.Amount{
		CPU:    resource.NewMilliQuantity(s.percentile(cpu, 100), resource.DecimalSI),
		Memory: resource.NewQuantity(s.percentile(memory, 100<<20), resource.BinarySI),
	}
	if most := s.Policy.Spec.Maximum; most != nil {
		if most.CPU != nil && a.CPU.Cmp(*most.CPU) > 0 {
			a.CPU = most.CPU
		}
		if most.Memory != nil && a.Memory.Cmp(*most.Memory) > 0 {
			a.Memory = most.Memory
		}
	}
	policy := s.policy("0%")
	policy.Spec.Minimum = a
	name := "slack minimum " + format.Cores(a.CPU.MilliValue()) + " CPU " + format.Bytes(a.Memory.Value())
	return slackChoice{name: name, policy: policy}, nil
}

// percentile returns the percentile of the goal of values, rounded up to a step, at least one step.
func (s *search) percentile(values []int64, step int64) int64 {
	if len(values) == 0 {
		return step
	}
	slices.Sort(values)
	i := int(math.Ceil(s.goals.Percent/100*float64(len(values)))) - 1
	return max(1, (values[i]+step-1)/step) * step
}
