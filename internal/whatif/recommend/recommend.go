// Package recommend finds the configuration of a cluster with the lowest cost that meets goals: which scheduler profile, which requests for
// each workload, and how much slack.
//
// A recording is divided into parts of equal length. The configurations are fitted on the first two thirds of the parts, and the best is
// confirmed on the last third, which the search has not seen. In each part, the pods that run at its start are scheduled again in a time
// that does not count (Settle), so that profile and requests apply to all pods; from then on pods arrive as recorded, and an autoscaler
// adds and removes nodes.
//
// The search begins on the part with the highest use, with all rules of requests, and with the other profiles and the best of these rules.
// Where pods wait, rates of slack are bisected and one minimum is tried. What is left is simulated on all parts to fit. Of the workloads
// whose requests the winner changes, those are kept that save next to nothing.
package recommend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// tolerance is how much more overload, or how many more killed pods, than in force count as equal, as a fraction: placements differ by
// chance.
const tolerance = 0.05

// Goals are what a configuration must reach. Overload, kills and unschedulable pods are at most those of the configuration in force, up to
// tolerance.
type Goals struct {
	// Percent of the pods have a node within Wait. If HasWait is not set, it is DefaultWait or the time of the configuration in force,
	// whichever is longer, and the percentage is the highest of 99, 95 and 90 for which the recording has enough arrivals.
	Percent float64
	Wait    time.Duration
	HasWait bool
	// NoWait is set if waits cannot be judged: too few pods arrive.
	NoWait bool
	// NoUsage is set if only waits can be judged: no usage is recorded, and only slack may change.
	NoUsage bool
	// Overload in node minutes, and Killed pods, both per day, replace the bounds from the configuration in force, unless they are nil.
	Overload, Killed *float64
}

// bounds returns the bounds of overload and kills over the days of the figures in force.
func (g *Goals) bounds(base *figures) (overload, killed float64) {
	overload, killed = base.overload*(1+tolerance), base.killed*(1+tolerance)
	if g.Overload != nil {
		overload = *g.Overload * base.days
	}
	if g.Killed != nil {
		killed = *g.Killed * base.days
	}
	return overload, killed
}

// wait returns the time within which the percentage of the pods has a node.
func (g *Goals) wait(f *figures) time.Duration { return f.waits.Percentile(g.Percent) }

// DefaultWait is the time within which pods must have a node unless Goals has another.
const DefaultWait = 5 * time.Second

func (g *Goals) waitBound(base *figures) time.Duration {
	if !g.HasWait {
		return max(g.Wait, g.wait(base))
	}
	return g.Wait
}

// setDefaults sets the wait and its percentage for a number of arrivals, unless they are given. It reports whether waits can be judged.
func (g *Goals) setDefaults(arrivals int64) bool {
	if g.HasWait {
		return true
	}
	g.Wait = DefaultWait
	for _, g.Percent = range []float64{99, 95, 90} {
		if arrivals >= g.minArrivals() {
			return true
		}
	}
	return false
}

// isReached reports whether figures reach the goal of waits.
func (g *Goals) isReached(f, base *figures) bool { return g.NoWait || g.wait(f) <= g.waitBound(base) }

// minArrivals returns the number of arrivals without which the percentage of waits says nothing: ten pods must wait longer.
func (g *Goals) minArrivals() int64 { return int64(math.Ceil(10/(1-g.Percent/100) - 1e-6)) }

// Changes are the levers that a recommendation may change.
type Changes struct{ Profile, Requests, Slack bool }

// Options describe a recommendation. Errors name the flag of each option.
type Options struct {
	// Source has the recording. Folder is where the parts of the recording are written while it is searched, the folder of the system for
	// temporary files if it is empty.
	Source recording.Source
	Folder string
	// Current is the profile in force. Profiles are the others to try, if Change has the profile.
	Current  engine.NamedConfig
	Profiles []engine.NamedConfig
	// Policy is the policy to change: its pool and other fields remain. IsInForce is set if it is in force.
	Policy    *v1alpha1.ResourceSlack
	IsInForce bool
	// Autoscaler adds and removes nodes. HasIdle is set if its time until an idle node is removed is known, and not measured.
	Autoscaler *scaling.Spec
	HasIdle    bool
	// CountsNodes is set if the answer is how many nodes are not needed, since no autoscaler is given: a node costs 1 per hour or, if nodes
	// differ in size, as much as it has CPUs.
	CountsNodes bool
	Goals       Goals
	Change      Changes
	Metrics     result.Metrics
	Run         compare.Run
	// Report is called with the progress, one line each.
	Report func(line string)
}

// Parts of a recording: at most maxParts, each at least partSeconds long if there are more than minParts. The first part of each part is
// not counted: settleShare of it, at most maxSettle seconds.
const (
	minParts    = 6
	maxParts    = 12
	partSeconds = 24 * 3600
	settleShare = 0.2
	maxSettle   = 2 * 3600
)

// Find finds and confirms a configuration. If ctx is canceled, it returns the error of ctx.
func Find(ctx context.Context, o Options) (*Result, error) {
	read, start, end, err := recording.OpenSpan(o.Source.Recording)
	if err != nil {
		return nil, err
	}
	s, err := newSearch(ctx, &o, start, end)
	if err != nil {
		return nil, err
	}
	fitEnd := start + int64(s.fit)*s.seconds
	uses := usesOf(read, start, fitEnd)
	r := newResult(&o, read, start, fitEnd, start+int64(s.parts)*s.seconds)
	templates := read.Templates()
	for _, u := range uses {
		u.template = templates[recording.OwnerOf(u.pod)]
		r.uses[u.Workload] = u
	}
	if err := s.check(read, uses, start, fitEnd, r); err != nil {
		return nil, err
	}
	s.countCPUs(read, r)
	if r.Goals = s.goals.text(); !s.goals.NoWait {
		r.WaitPercent = s.goals.Percent
	}
	s.measureIdle(read, r)
	r.Autoscaler = s.autoscaler
	if o.Change.Requests {
		if r.constraints, err = newConstraints(read); err != nil {
			return nil, err
		}
		if read.LacksAutoscalers() {
			r.assume(
				"autoscalers of pods were not recorded: a HorizontalPodAutoscaler with a target utilization changes the number of pods " +
					"when requests change, and a VerticalPodAutoscaler changes requests",
			)
		}
		s.rules = newRules()
		r.Kept = fillRules(s.rules, uses, r.constraints, largestNode(read))
		s.rules = slices.DeleteFunc(s.rules, func(r rule) bool { return r.Name != keepRequests && len(r.table) == 0 })
	}
	s.order = byUse(read, s.fit, start, s.seconds)
	folder, err := s.writeParts(read, start)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s.fitted = recording.WithSpan(o.Source.Recording, start, fitEnd)
	best, reached, err := s.run()
	if err != nil {
		return nil, err
	}
	if err := s.confirm(r, best, reached); err != nil {
		return nil, err
	}
	if s.CountsNodes && r.Confirmed {
		r.Nodes, err = s.explainNodes(r)
	}
	return r, err
}

// explainNodes says which nodes at the end of the recording can go with the recommended requests, and what keeps the others.
func (s *search) explainNodes(r *Result) (*scaling.NodesExplanation, error) {
	last, err := recording.OpenAt(s.recordings[s.parts-1], time.Time{})
	if err != nil {
		return nil, err
	}
	changed := recording.RequestsOf(r.Requests)
	for i, pod := range last.Objects.Running {
		last.Objects.Running[i] = changed(pod)
	}
	config, err := r.profile.Config()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	e, err := engine.State{Objects: last.Objects, Now: last.Time}.Engine(ctx, engine.Scheduler{Config: config, Source: r.profile.Name})
	if err != nil {
		return nil, err
	}
	return scaling.ExplainNodes(ctx, e, last.Objects, nil)
}

// newSearch returns a search over the parts of a recording from one second to another.
func newSearch(ctx context.Context, o *Options, start, end int64) (*search, error) {
	s := &search{Options: *o, ctx: ctx, goals: o.Goals, autoscaler: *o.Autoscaler, triesSlack: o.Change.Slack, rules: newRules()[:1]}
	s.autoscaler.Groups = slices.Clone(s.autoscaler.Groups)
	s.parts = min(max(int((end-start)/partSeconds), minParts), maxParts) / 3 * 3
	s.fit, s.seconds = s.parts/3*2, (end-start)/int64(s.parts)/60*60
	s.settle = min(int64(settleShare*float64(s.seconds))/60*60, maxSettle)
	if s.seconds < 600 {
		return nil, fmt.Errorf("--recording: %s has %s: must have at least an hour", o.Source.Recording,
			time.Duration(end-start)*time.Second)
	}
	return s, nil
}

// writeParts writes each part of the recording to a file in a new folder: a run takes the time and memory of its part only.
func (s *search) writeParts(r *recording.Recording, start int64) (folder string, err error) {
	if s.Folder != "" {
		if err := os.MkdirAll(s.Folder, 0o700); err != nil {
			return "", err
		}
	}
	if folder, err = os.MkdirTemp(s.Folder, recording.TemporaryPattern); err != nil {
		return "", err
	}
	s.recordings = make([]string, s.parts)
	for i := range s.recordings {
		from := start + int64(i)*s.seconds
		s.recordings[i], err = r.WriteSpan(filepath.Join(folder, fmt.Sprint(i, recording.Extension)), from, from+s.seconds)
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(folder))
		}
	}
	return folder, nil
}

// check returns an error for a recording that cannot answer.
func (s *search) check(r *recording.Recording, uses []*workloadUse, start, end int64, out *Result) error {
	if s.IsInForce {
		scaled := scaling.Config{Spec: s.autoscaler, Slack: s.Policy}
		if hasPool, err := scaled.Check(r.Nodes); err == nil && !hasPool {
			return errors.New("--policy: spec.pool selects no node of the input: set another pool, or label= in --autoscaler")
		}
	}
	readings, gaps := 0, 0
	for _, u := range uses {
		readings, gaps = readings+u.readings, gaps+u.gaps
	}
	if gaps > 0 {
		out.assume("%s missing in the first two thirds: the value before each gap is repeated",
			format.PartAre(gaps, readings+gaps, "reading"))
	}
	switch {
	case readings > 0:
	case s.Change == Changes{Slack: true}:
		s.goals.NoUsage = true
		out.assume("overload, kills and requests are not judged: no usage of pods is recorded in the first two thirds")
	default:
		return errors.New("--recording: found no usage of pods in the first two thirds: plimsoll record --prometheus URL records it, " +
			"and plimsoll record --follow unless --prometheus is not set and metrics-server is missing; --change slack needs none")
	}
	arrivals, unknown, err := s.countPods(r, start, end)
	if err != nil {
		return err
	}
	if unknown > 0 {
		out.assume("the usage of %s of the first two thirds was not recorded: it is generated around 0.4 of their requests",
			format.Of(unknown, "pod"))
	}
	if !s.goals.setDefaults(arrivals) {
		s.triesSlack, s.goals.NoWait = false, true
		out.assume("waits are not judged: %s in the first two thirds of the recording", format.Of(arrivals, "pod")+" arrive")
		return nil
	}
	if need := s.goals.minArrivals(); arrivals < need {
		text := fmt.Sprintf("--wait: found %s in the first two thirds of the recording: p%g requires at least %d",
			format.Of(arrivals, "arrival"), s.goals.Percent, need)
		if arrivals > 0 {
			days := float64(end-start) / 86400 * 1.5 * float64(need) / float64(arrivals)
			text += fmt.Sprintf(", as a recording of about %s has; or set a lower percentage", format.Of(int64(math.Ceil(days)), "day"))
		}
		return errors.New(text)
	}
	return nil
}

// countPods returns the number of pods that arrive and of those whose usage is unknown, and sets running. It returns an error if more than
// 1 % of the pods are larger than the nodes of the autoscaler.
func (s *search) countPods(r *recording.Recording, start, end int64) (arrivals, unknown int64, err error) {
	pods, tooLarge := 0, []string{}
	for i := range r.Pods {
		p := &r.Pods[i]
		if resources.IsNodeBound(p.Object) || p.Created >= end {
			continue
		}
		pods++
		if p.Node != "" && p.Ended > start && p.CPU.Len()+p.Memory.Len() == 0 {
			unknown++
		}
		switch {
		case p.Created >= start:
			arrivals++
		case p.Ended > start:
			s.running++
		}
		if !s.autoscaler.Fits(recording.PodAmounts(p.Object)) {
			tooLarge = append(tooLarge, resources.Name(p.Object))
		}
	}
	if 100*len(tooLarge) > pods {
		return 0, 0, fmt.Errorf("--autoscaler: %s larger than its nodes, such as %s: at most 1 %% may be",
			format.PartAre(len(tooLarge), pods, "pod"), strings.Join(tooLarge[:min(3, len(tooLarge))], ", "))
	}
	return arrivals, unknown, nil
}

// largestNode returns the largest allocatable amounts of the recorded nodes.
func largestNode(r *recording.Recording) (largest resources.Amounts) {
	for i := range r.Nodes {
		largest = largest.Max(recording.Amounts(r.Nodes[i].Object.Status.Allocatable))
	}
	return largest
}

// countCPUs makes nodes cost as much as they have CPUs if they have no cost and differ in size: one large node is worth several small ones.
func (s *search) countCPUs(r *recording.Recording, out *Result) {
	if !s.CountsNodes {
		return
	}
	sizes, nodes := map[resources.Amounts]bool{}, make([]*v1.Node, 0, len(r.Nodes))
	for i := range r.Nodes {
		nodes = append(nodes, r.Nodes[i].Object)
		sizes[recording.Amounts(r.Nodes[i].Object.Status.Allocatable)] = true
	}
	added, _, err := s.autoscaler.NewNodes(nodes)
	if len(sizes) < 2 || err != nil || len(added) != 1 { // the error is found by the first run
		return
	}
	s.autoscaler.Groups[0].Cost = added[0].Status.Allocatable.Cpu().AsApproximateFloat64()
	s.autoscaler.IsPriced, s.autoscaler.CountsCPUs, s.countsCPUs = true, true, true
	out.assume("nodes differ in size: an hour of a node counts as many CPUs as it has; new ones are like %s, with %s CPUs", added[0].Name,
		added[0].Status.Allocatable.Cpu())
}

// measureIdle sets the time until the autoscaler removes an idle node to the median of the recorded nodes that went, unless it is given.
func (s *search) measureIdle(r *recording.Recording, out *Result) {
	lastEnd := map[string]int64{}
	for i := range r.Pods {
		if p := &r.Pods[i]; p.Node != "" && !resources.IsNodeBound(p.Object) {
			lastEnd[p.Node] = max(lastEnd[p.Node], p.Ended)
		}
	}
	var idle []int64
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if last, ok := lastEnd[n.Object.Name]; ok && n.Gone != recording.Never && last <= n.Gone {
			idle = append(idle, n.Gone-last)
		}
	}
	loop := &s.autoscaler.Loop
	switch {
	case s.HasIdle:
	case len(idle) >= 3:
		slices.Sort(idle)
		loop.Idle = idle[len(idle)/2]
		loop.AfterAdd = min(loop.AfterAdd, loop.Idle)
		out.assume("a node is removed after it was idle for %d s, the median of %s that went in the recording", loop.Idle,
			format.Of(len(idle), "node"))
	default:
		out.assume("a node is removed after it was idle for %d s, the default of Cluster Autoscaler: %s in the recording; idle= sets it",
			loop.Idle, format.Of(len(idle), "idle node")+" went")
	}
}

// byUse returns the parts to fit, the part with the highest use of CPU first.
func byUse(r *recording.Recording, fit int, start, seconds int64) []int {
	use := make([]float64, fit)
	for i := range r.Pods {
		p := &r.Pods[i]
		for step := p.CPU.First; step < p.CPU.End(); step += 10 {
			if part := (int64(step)*int64(r.About.Step) - start) / seconds; part >= 0 && part < int64(fit) {
				if value, ok := p.CPU.At(step); ok {
					use[part] += value
				}
			}
		}
	}
	order := make([]int, fit)
	for i := range order {
		order[i] = i
	}
	highest := slices.Index(use, slices.Max(use))
	order[0], order[highest] = order[highest], order[0]
	return order
}
