// Package compare runs a cluster with several profiles and amounts of slack, and
// with several seeds, and compiles the result document.
//
// # Jobs
//
// Pool runs the jobs of a what-if, each with one profile and seed, in
// separate processes. Processes share no state, so that as many runs as CPUs can be
// executed in parallel without affecting each other.
//
// # Backtest
//
// Backtest replays a recording under the profile that was in force, and compares the outcome with the outcome
// of the recorded placements.
package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// Options describe the runs to compare. Errors name the flag of each option.
type Options struct {
	// Profiles are the names of the profiles; the first is the baseline. Given are profiles that are already read; they follow Profiles.
	Profiles []string
	Given    []engine.NamedConfig
	// Autoscaler is nil for none. With an autoscaler, every profile is run with every Slack; if
	// Slack is empty, no slack is maintained.
	Autoscaler *scaling.Spec
	Slack      []Slack
	// Requests, named by RequestsName, make each combination run once more, with these requests of workloads.
	Requests     []recording.WorkloadRequests
	RequestsName string
	Source       generate.Source
	Metrics      result.Metrics
	// Saturation is the fraction of its allocatable CPU above which a node is saturated.
	Saturation float64
	// Seeds is the number of seeds, from Seed on.
	Seed  uint64
	Seeds int
	// Shard limits the runs to a part of the seeds; the zero Shard has all seeds.
	Shard result.Shard
	// Command computes the result, see result.Result.
	Command string
	// Warn is called with warnings about the profiles and the source.
	Warn func(message string)
}

// RescheduleIfPlaced makes all pods arrive again if the scheduler has no pod to place otherwise: profiles could not differ.
func (o *Options) RescheduleIfPlaced() error {
	in, err := o.Source.Input(o.Seed)
	placed := func(p recording.InputPod) bool {
		return p.Object.Spec.NodeName != "" || p.Recorded != nil && p.Recorded.Fixed
	}
	if err != nil || len(in.Pods) == 0 || slices.ContainsFunc(in.Pods, func(p recording.InputPod) bool { return !placed(p) }) {
		return err
	}
	o.Source.Reschedule = true
	o.Warn(fmt.Sprintf("%s %s a node, so that all are scheduled again (--reschedule=false keeps their nodes)",
		format.Part(len(in.Pods), len(in.Pods), "pod"), format.Form(len(in.Pods), "has", "have")))
	return nil
}

// Slack is an amount of slack.
type Slack struct {
	// Text of the option: a rate, or the name of a file.
	Text string
	// Policy is nil for no slack.
	Policy *v1alpha1.ResourceSlack
}

// column is one of the compared combinations of a profile and slack.
type column struct {
	name, slack string
	profile     engine.NamedConfig
	autoscaler  *scaling.Config
	requests    []recording.WorkloadRequests
}

// Plan has the runs of a comparison.
type Plan struct {
	columns []column
	// jobs are ordered by column and seed, followed by the jobs of the backtest of a recording.
	jobs     []Job
	backtest int  // number of jobs of the backtest
	recorded bool // the input is a recording
	parts    int  // of the runs over a recording
	result   result.Result
}

// A run over a recording has the figures of at most maxParts parts of it, each at least minPartSeconds long.
const (
	maxParts       = 12
	minPartSeconds = 600
)

// NewPlan validates the options, reads the source, and plans the runs.
func NewPlan(ctx context.Context, o Options) (*Plan, error) {
	compared, err := readProfiles(ctx, o)
	if err != nil {
		return nil, err
	}
	in, err := o.Source.Input(o.Seed)
	if err != nil {
		return nil, err
	}
	o.warnOf(&in)
	if o.Source.Generate != "" && o.Seeds > 1 {
		in.Assumptions = append(in.Assumptions,
			"nodes and pods are generated for each seed; their numbers here are those of the first seed")
	}
	parts := min(int(in.End/minPartSeconds), maxParts)
	p := &Plan{columns: newColumns(compared, &o), recorded: in.Part != nil, parts: parts, result: result.Result{
		APIVersion: result.APIVersion, Kind: result.Kind, Command: o.Command,
		Source: sourceOf(&in), Assumed: in.Assumptions,
		Settings: result.Settings{
			StepSeconds: replay.Step, TailSeconds: o.Source.Tail, Level: result.Level, Metrics: o.Metrics, Saturation: o.Saturation,
		},
	}}
	if err := p.describeScenario(&o, &in); err != nil {
		return nil, err
	}
	p.result.Assumed = append(p.result.Assumed, schedulerOf(&in))
	if err := p.describeAutoscaler(in.Nodes, o.Warn); err != nil {
		return nil, err
	}
	for _, c := range p.columns {
		p.result.Profiles = append(p.result.Profiles, c.name)
	}
	p.setSeeds(o)
	p.addJobs(&o)
	if p.recorded {
		p.addBacktest(o)
		p.result.Settings.TailSeconds = 0
	}
	return p, nil
}

// describeScenario sets the limits and the usage of the result. If nothing is sampled, one run is enough.
func (p *Plan) describeScenario(o *Options, in *recording.Input) error {
	usage, err := o.Source.UsageSpec()
	if err != nil {
		return err
	}
	s := &p.result.Scenario
	s.Profiles = []result.Profile{}
	if o.Source.Generate != "" {
		s.Limits = cmp.Or(o.Source.Limits, generate.DefaultLimits).String()
	}
	s.Usage = usageText(in, p.result.Source.UsageKnown, usage)
	switch pods := p.result.Source.UsageKnown; {
	case pods > 0 && pods == len(in.Pods):
		if !p.recorded && o.Shard.Count == 0 {
			p.result.Source.Exact, o.Seeds = true, 1
		}
	case pods > 0:
		p.result.Assumed = append(p.result.Assumed, "generated usage has "+seedText(o.Seed, o.Seeds))
	default:
		p.result.Assumed = append(p.result.Assumed, "the usage of pods is generated, with "+seedText(o.Seed, o.Seeds))
	}
	return nil
}

// usageText says what the usage of the pods of an input is, that of known pods and that of others.
func usageText(in *recording.Input, known int, others fmt.Stringer) string {
	word := "measured"
	if in.Part != nil {
		word = "recorded"
	}
	switch {
	case known == 0:
		return others.String()
	case known == len(in.Pods):
		return word
	}
	return word + ", or else " + others.String()
}

// warnOf warns about the input, and about slack on nodes that its pods may not use.
func (o *Options) warnOf(in *recording.Input) {
	for _, warning := range in.Warnings {
		o.Warn(warning)
	}
	if n := missing(o.Requests, in); n > 0 {
		o.Warn("--requests: " + format.PartAre(n, len(o.Requests), "workload") + " not in the input")
	}
	hasSelector := func(p recording.InputPod) bool { return len(p.Object.Spec.NodeSelector) > 0 }
	var tooLarge []string
	for i := range in.Pods {
		if p := &in.Pods[i]; o.Autoscaler != nil && !resources.IsNodeBound(p.Object) && !o.Autoscaler.Fits(p.Requests) {
			tooLarge = append(tooLarge, resources.Name(p.Object))
		}
	}
	if len(tooLarge) > 0 {
		o.Warn(fmt.Sprintf("--autoscaler: %s larger than its nodes, such as %s: no node is added for them",
			format.PartAre(len(tooLarge), len(in.Pods), "pod"), tooLarge[0]))
	}
	for _, s := range o.Slack {
		if s.Policy != nil && len(s.Policy.Spec.Pool.NodeSelector) == 0 && slices.ContainsFunc(in.Pods, hasSelector) {
			o.Warn(
				fmt.Sprintf("--slack %s: the slack may be on nodes that pods with a node selector may not use: set spec.pool.nodeSelector",
					s.Text),
			)
		}
	}
}

// setSeeds sets the seeds of the result to the seeds of the shard.
func (p *Plan) setSeeds(o Options) {
	for i := range o.Seeds {
		if o.Shard.Has(i) {
			p.result.Seeds = append(p.result.Seeds, o.Seed+uint64(i))
		}
	}
	if o.Shard.Count > 0 {
		p.result.Shard = &o.Shard
	}
}

// addBacktest adds the runs that measure the error of the model with the first profile. If the compared runs
// are of the recorded cluster without changes, the first is reused.
func (p *Plan) addBacktest(o Options) {
	if !o.Shard.Has(0) {
		return
	}
	jobs := backtestJobs(Job{
		Source: generate.Source{
			Source: recording.Source{Recording: o.Source.Recording, Strict: o.Source.Strict}, Usage: o.Source.Usage,
		},
		Profile: p.columns[0].profile, Seed: o.Seed, Metrics: o.Metrics, Saturation: o.Saturation,
	})
	if !o.Source.Reschedule && p.columns[0].autoscaler == nil {
		jobs = jobs[:1]
	}
	p.jobs, p.backtest = append(p.jobs, jobs...), len(jobs)
}

// setBacktest sets the error of the model, unless its runs were interrupted.
func (p *Plan) setBacktest(r *result.Result, runs []*result.Run) {
	if p.backtest == 0 {
		return
	}
	compared := runs[len(runs)-p.backtest:]
	if p.backtest == 1 {
		compared = append(slices.Clone(compared), runs[0])
	}
	for _, run := range compared {
		if run == nil || run.Interrupted {
			r.Interrupted = true
			return
		}
	}
	r.Backtest = result.NewBacktest(p.columns[0].profile.Name, r.Source, compared[0], compared[1])
}

// sourceOf describes an input.
func sourceOf(in *recording.Input) result.Source {
	s := result.Source{Name: in.Name, Nodes: len(in.Nodes), Pods: len(in.Pods), Missing: in.Missing}
	for i := range in.Pods {
		p := &in.Pods[i]
		if !p.IsGenerated {
			s.UsageKnown++
		}
		if p.Resources.CPULimit == 0 || p.Resources.MemoryLimit == 0 {
			s.Unlimited++
		}
	}
	return s
}

// schedulerOf names the kube-scheduler that is built in, and the version whose features it has.
func schedulerOf(in *recording.Input) string {
	text := "pods are placed by the code of kube-scheduler " + emulation.Built().String()
	emulated, supported, err := emulation.For(in.Kubernetes)
	if err != nil {
		return text // the version of the cluster is not known
	}
	why := "as the cluster has "
	if !supported {
		why = "the nearest to the version of the cluster, "
	}
	return fmt.Sprintf("%s, with the features of Kubernetes %s, %s%s", text, emulated, why, in.Kubernetes)
}

// seedText returns the first of n seeds, or the first and the last seed.
func seedText(first uint64, n int) string {
	if n == 1 {
		return fmt.Sprintf("the seed %d", first)
	}
	return fmt.Sprintf("seeds %d to %d", first, first+uint64(n)-1)
}

// newColumns returns every combination of a profile, slack and requests.
func newColumns(compared []engine.NamedConfig, o *Options) []column {
	var columns []column
	for _, profile := range compared {
		c := column{name: profile.Name, profile: profile}
		if o.Autoscaler == nil {
			columns = append(columns, c)
			continue
		}
		if len(o.Slack) == 0 {
			c.autoscaler = &scaling.Config{Spec: *o.Autoscaler}
			columns = append(columns, c)
		}
		for _, s := range o.Slack {
			c.name, c.slack = profile.Name+", slack "+s.Text, s.Text
			c.autoscaler = &scaling.Config{Spec: *o.Autoscaler, Slack: s.Policy}
			columns = append(columns, c)
		}
	}
	if len(o.Requests) > 0 {
		for _, c := range columns {
			c.name, c.requests = c.name+", requests of "+o.RequestsName, o.Requests
			columns = append(columns, c)
		}
	}
	return columns
}

// missing returns how many of the workloads with requests have no pod in the input.
func missing(requests []recording.WorkloadRequests, in *recording.Input) int {
	has := map[resources.Workload]bool{}
	for i := range in.Pods {
		has[resources.WorkloadOf(in.Pods[i].Object)] = true
	}
	n := 0
	for _, r := range requests {
		if !has[resources.Workload{Namespace: r.Namespace, Kind: r.Kind, Name: r.Name}] {
			n++
		}
	}
	return n
}

// describeAutoscaler validates the autoscaler for the nodes of the input, and adds it
// to the settings and assumptions of the result.
func (p *Plan) describeAutoscaler(nodes []recording.Node, warn func(string)) error {
	first := p.columns[0].autoscaler
	if first == nil {
		return nil
	}
	withoutSlack := false
	var withoutPool []string
	for _, c := range p.columns {
		hasPool, err := c.autoscaler.Check(nodes)
		if err != nil {
			return fmt.Errorf("--autoscaler: %w", err)
		}
		withoutSlack = withoutSlack || c.slack != "" && c.autoscaler.Slack == nil
		if c.autoscaler.Slack != nil && !hasPool && !slices.Contains(withoutPool, c.slack) {
			withoutPool = append(withoutPool, c.slack)
		}
	}
	assume := func(format string, args ...any) {
		p.result.Assumed = append(p.result.Assumed, fmt.Sprintf(format, args...))
	}
	p.result.Settings.Autoscaler = &result.Autoscaler{Groups: first.Spec.Texts(), Priced: first.Spec.IsPriced}
	for _, text := range p.result.Settings.Autoscaler.Groups {
		assume("an autoscaler adds and removes nodes: %s", strings.ReplaceAll(text, ",", ", "))
	}
	if p.recorded {
		assume("nodes that appear or go in the recording are left to the autoscaler: the input has those of its start")
	}
	if !first.Spec.IsPriced {
		assume("a node costs 1 per hour, as the groups have no cost")
	}
	for _, text := range withoutPool {
		assume("slack %s reserves nothing: no node is in the pool of its policy", text)
		warn("--slack " + text + " reserves nothing: spec.pool of its policy selects no node: set another pool, or label= in --autoscaler")
	}
	if withoutSlack {
		assume("with a slack of 0%% no capacity is reserved, not even for the biggest pod")
	}
	return nil
}

// addJobs adds the jobs to compare. The run with the first seed records time series, node use and decisions.
func (p *Plan) addJobs(o *Options) {
	for _, c := range p.columns {
		for _, seed := range p.result.Seeds {
			j := Job{
				Source: o.Source, Profile: c.profile, Autoscaler: c.autoscaler, Metrics: o.Metrics, Saturation: o.Saturation,
				Seed: seed, Record: seed == o.Seed,
			}
			if p.recorded {
				j.Parts = p.parts
			}
			j.Source.Requests = c.requests
			p.jobs = append(p.jobs, j)
		}
	}
}

// Run runs the plan and returns the result. If ctx is canceled, the result has the
// runs so far and is marked as interrupted.
func (p *Plan) Run(ctx context.Context, run Run) (*result.Result, error) {
	runs, err := run(ctx, p.jobs)
	if err != nil {
		return nil, err
	}
	r := p.result
	p.setBacktest(&r, runs)
	for _, c := range p.columns {
		profile := result.Profile{Name: c.name, Slack: c.slack, Runs: []result.Run{}}
		for _, run := range runs[:len(r.Seeds)] {
			if run != nil {
				profile.Runs = append(profile.Runs, *run)
			}
			r.Interrupted = r.Interrupted || run == nil || run.Interrupted
		}
		runs = runs[len(r.Seeds):]
		r.Scenario.Profiles = append(r.Scenario.Profiles, profile)
	}
	r.Scenario.Compare()
	if r.Source.Exact {
		r.Scenario.SetExact()
	}
	r.Conclude()
	return &r, nil
}
