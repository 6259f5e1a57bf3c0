// Package slackpolicy searches the cheapest slack policy with which pods wait at most a given time, by simulating many policies over the
// history of a pool.
package slackpolicy

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Goal is what a recommended policy must reach: a percentage of the pods have a node within a time.
type Goal struct {
	Percent float64
	Wait    time.Duration
	// Policy is the policy to change: its pool, granularity and other fields remain.
	Policy *v1alpha1.ResourceSlack
	// Zone is the time zone of schedules, UTC if it is nil.
	Zone *time.Location
	// MinDays is how often the history must have an hour of the working days, or of weekends, for a schedule with it. Other hours are as on
	// the other days.
	MinDays float64
}

// wait returns the time within which the percentage of the pods has a node with a candidate.
func (g *Goal) wait(c *Candidate) time.Duration { return c.Waits.Percentile(g.Percent) }

// Candidate is a policy and its simulated outcome.
type Candidate struct {
	// Name describes the policy, such as "rate 12%".
	Name string
	// Policy is nil for no slack.
	Policy *v1alpha1.ResourceSlack
	Outcome
}

// Recommendation is the result of Search.
type Recommendation struct {
	// None is the outcome without slack.
	None Candidate
	// Best is the cheapest candidate that reaches the goal, nil if none does. Nearest is the candidate with the shortest wait, of
	// several the cheapest.
	Best, Nearest *Candidate
	// Candidates are all by cost, and Frontier those for which no cheaper one has an equal or shorter wait.
	Candidates, Frontier []Candidate
}

// Search searches the cheapest policy that reaches a goal: rates, minimums, and schedules of minimums by the hour of working days and
// weekends. It returns an error if ctx is canceled or the input is invalid.
func Search(ctx context.Context, h *History, node NodeType, goal Goal) (*Recommendation, error) {
	s := &search{ctx: ctx, history: h, node: node, goal: goal}
	s.countNeeds()
	none := s.try("none", nil)
	if s.err == nil && !s.reaches(&none) {
		s.searchRates()
		s.searchMinimums()
		if s.seesDays() {
			costs := s.newScheduleCosts()
			for _, segments := range []int{1, 2, 3, 5} {
				s.searchSchedules(costs, segments)
			}
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.result(), nil
}

// search is the state of Search.
type search struct {
	ctx        context.Context
	history    *History
	node       NodeType
	goal       Goal
	candidates []Candidate
	err        error

	// unit is the mean requests of the arriving pods. needs are the units of slack with which each of these pods has a node at
	// once, in the order of arrival; times has the hour of the week of each.
	unit  resources.Amounts
	needs []need
	// hours is the number of hours of the history in each class.
	hours [classes]float64
}

// need is the slack that a pod needs when it arrives.
type need struct {
	units float64
	class int
}

// classes are the hours of working days and then those of weekends.
const classes = 48

// classOf returns the class of a second of the history.
func (s *search) classOf(second int64) int {
	t := s.history.Start.Add(time.Duration(second) * time.Second).In(cmp.Or(s.goal.Zone, time.UTC))
	if day := t.Weekday(); day == time.Saturday || day == time.Sunday {
		return 24 + t.Hour()
	}
	return t.Hour()
}

// countNeeds sets unit, needs and hours. A pod needs the slack that it and the pods before it use until nodes for them
// are ready.
func (s *search) countNeeds() {
	for second := int64(0); second < s.history.Seconds; second += 60 {
		s.hours[s.classOf(second)] += float64(min(60, s.history.Seconds-second)) / 3600
	}
	pods := slices.DeleteFunc(slices.Clone(s.history.Pods), func(p Pod) bool {
		return p.Arrival < 0 || !p.Requests.FitsIn(s.node.Allocatable)
	})
	if len(pods) == 0 {
		return
	}
	for i := range pods {
		s.unit = s.unit.Add(withoutSlots(pods[i].Requests))
	}
	s.unit = s.unit.DivideUp(int64(len(pods))).Max(resources.Amounts{CPU: 1, Memory: 1})
	var used resources.Amounts
	first := 0
	for i := range pods {
		used = used.Add(withoutSlots(pods[i].Requests))
		since := pods[i].Arrival - s.node.Boot - s.node.Interval
		for pods[first].Arrival < since {
			used = used.Minus(withoutSlots(pods[first].Requests))
			first++
		}
		s.needs = append(s.needs, need{used.MaxFraction(s.unit), s.classOf(pods[i].Arrival)})
	}
}

// isSeen reports whether the history has a class often enough for a schedule.
func (s *search) isSeen(class int) bool {
	return s.hours[class] > 0 && s.hours[class] >= s.goal.MinDays
}

// seesDays reports whether the history has each hour often enough, on working days or weekends.
func (s *search) seesDays() bool {
	for class := range 24 {
		if s.goal.MinDays > 0 && !s.isSeen(class) && !s.isSeen(class+24) {
			return false
		}
	}
	return true
}

// try simulates a policy unless it is already a candidate, and returns its candidate, which has no outcome if the policy is invalid, such
// as a rate of 100% of the allocatable resources.
func (s *search) try(name string, policy *v1alpha1.ResourceSlack) Candidate {
	c := Candidate{Name: name, Policy: policy}
	isSame := func(other Candidate) bool { return apiequality.Semantic.DeepEqual(policy, other.Policy) }
	if i := slices.IndexFunc(s.candidates, isSame); i >= 0 {
		return s.candidates[i]
	}
	if s.err = cmp.Or(s.err, s.ctx.Err()); s.err != nil || policy != nil && policy.Spec.Validate() != nil {
		return c
	}
	c.Outcome, s.err = Simulate(s.history, s.node, policy)
	s.candidates = append(s.candidates, c)
	return c
}

// reaches reports whether a candidate has an outcome and reaches the goal.
func (s *search) reaches(c *Candidate) bool {
	return c.Waits != nil && s.goal.wait(c) <= s.goal.Wait
}

// policy returns the policy to change, with a rate and without minimum and schedules.
func (s *search) policy(rate string) *v1alpha1.ResourceSlack {
	policy := s.goal.Policy.DeepCopy()
	policy.Spec.MinRate, policy.Spec.Minimum, policy.Spec.Schedules = rate, nil, nil
	policy.Spec.Default()
	return policy
}

// geometricMean returns the number between two numbers that bisect tries.
func geometricMean(a, b float64) float64 { return math.Sqrt(a * b) }

// bisect calls try with numbers from low to high, at most steps times, to find the lowest that reaches the goal.
func (s *search) bisect(low, high float64, steps int, middle func(a, b float64) float64, try func(x float64) Candidate) {
	if c := try(high); !s.reaches(&c) {
		return
	}
	for ; steps > 0; steps-- {
		x := middle(low, high)
		if x <= low || x >= high {
			break
		}
		if c := try(x); s.reaches(&c) {
			high = x
		} else {
			low = x
		}
	}
}

// searchRates simulates rates up to the highest that is not a mistake, in whole percent.
func (s *search) searchRates() {
	rate := func(x float64) Candidate {
		text := fmt.Sprintf("%d%%", int64(x))
		return s.try("rate "+text, s.policy(text))
	}
	for _, x := range []float64{1, 2, 5, 10, 20, 50, 100, 200} {
		if c := rate(x); s.reaches(&c) {
			s.bisect(x/2.5, x, 6, func(a, b float64) float64 { return math.Floor((a + b) / 2) }, rate)
			return
		}
	}
}

// searchMinimums simulates constant minimums.
func (s *search) searchMinimums() {
	highest := 1.0
	for _, n := range s.needs {
		highest = max(highest, n.units)
	}
	s.bisect(0.5, 2*highest, 9, geometricMean, func(x float64) Candidate {
		policy := s.policy("0%")
		policy.Spec.Minimum = s.amount(x)
		return s.try("minimum "+amountText(policy.Spec.Minimum), policy)
	})
}

// amount returns a number of units, rounded up to 100 millicores and 100 MiB, and at most the maximum of the policy.
func (s *search) amount(units float64) *v1alpha1.Amount {
	round := func(unit, step int64) int64 { return int64(math.Ceil(units*float64(unit)/float64(step))) * step }
	a := &v1alpha1.Amount{
		CPU:    resource.NewMilliQuantity(max(100, round(s.unit.CPU, 100)), resource.DecimalSI),
		Memory: resource.NewQuantity(max(100<<20, round(s.unit.Memory, 100<<20)), resource.BinarySI),
	}
	if most := s.goal.Policy.Spec.Maximum; most != nil {
		if most.CPU != nil && a.CPU.Cmp(*most.CPU) > 0 {
			a.CPU = most.CPU
		}
		if most.Memory != nil && a.Memory.Cmp(*most.Memory) > 0 {
			a.Memory = most.Memory
		}
	}
	return a
}

// amountText describes an amount of CPU and memory.
func amountText(a *v1alpha1.Amount) string {
	return format.Cores(a.CPU.MilliValue()) + " CPU " + format.Bytes(a.Memory.Value())
}

// searchSchedules simulates schedules with a number of segments of each day. A weight is the price of a pod that waits, in
// unit-hours: each segment holds the slack at which more of it costs more than the waits that it avoids.
func (s *search) searchSchedules(costs *scheduleCosts, segments int) {
	s.bisect(1e-4, 1e4, 10, geometricMean, func(weight float64) Candidate {
		policy, units := s.policy("0%"), costs.days(weight, segments)
		s.setSchedules(policy, units)
		highest := slices.Max(units[:])
		switch text := amountText(s.amount(highest)); {
		case highest == 0:
			return s.try("minimum 0", policy)
		case len(policy.Spec.Schedules) == 0:
			return s.try("minimum "+text, policy)
		default:
			return s.try(format.Of(len(policy.Spec.Schedules), "schedule")+" up to "+text, policy)
		}
	})
}

// setSchedules sets the minimums of the hours of working days and weekends. The lowest is the minimum outside of schedules.
func (s *search) setSchedules(policy *v1alpha1.ResourceSlack, units [classes]float64) {
	for class := range units { // without data, as on the other days
		if other := (class + 24) % classes; !s.isSeen(class) && s.isSeen(other) {
			units[class] = units[other]
		}
	}
	lowest := slices.Min(units[:])
	if lowest > 0 {
		policy.Spec.Minimum = s.amount(lowest)
	}
	zone := ""
	if s.goal.Zone != nil && s.goal.Zone != time.UTC {
		zone = s.goal.Zone.String()
	}
	for class := 0; class < classes; {
		end := class + 1
		for end%24 != 0 && units[end] == units[class] {
			end++
		}
		days := "Mon-Fri"
		if class >= 24 {
			days = "Sat,Sun"
		}
		if units[class] > lowest {
			policy.Spec.Schedules = append(policy.Spec.Schedules, v1alpha1.Schedule{
				Days: days, From: fmt.Sprintf("%02d:00", class%24), To: fmt.Sprintf("%02d:00", (end-1)%24+1), TimeZone: zone,
				Minimum: s.amount(units[class]),
			})
		}
		class = end
	}
}

// result returns the recommendation of the candidates so far.
func (s *search) result() *Recommendation {
	r := &Recommendation{None: s.candidates[0]}
	r.Candidates = slices.SortedStableFunc(slices.Values(s.candidates), func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(s.goal.wait(&a), s.goal.wait(&b)))
	})
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if r.Nearest == nil || s.goal.wait(c) < s.goal.wait(r.Nearest) {
			r.Nearest, r.Frontier = c, append(r.Frontier, *c)
		}
		if r.Best == nil && s.reaches(c) {
			r.Best = c
		}
	}
	return r
}
