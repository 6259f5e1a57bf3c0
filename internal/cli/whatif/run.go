package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	whatifreport "github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/condition"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/source"
)

// plan is what is to be run: jobs in the order of the scenarios, in these of the
// columns, in these of the seeds.
type plan struct {
	result  result.Result
	columns []column
	jobs    []job.Job
	gate    *condition.Condition
}

func (o *whatIfOptions) run(cmd *cobra.Command) error {
	warn := base.Warnings(cmd.ErrOrStderr())
	if err := o.validate(cmd); err != nil {
		return err
	}
	p, err := o.plan(cmd.Context(), cmd.InOrStdin(), warn)
	if err != nil {
		return err
	}
	bar := base.NewRunProgress(cmd.ErrOrStderr(), len(p.jobs))
	pool := job.Pool{Command: selfCommand, Processes: runtime.GOMAXPROCS(0), Progress: bar.Show}
	runs, err := pool.Run(cmd.Context(), p.jobs)
	bar.End()
	if err != nil {
		return base.Failure(err)
	}
	if err := p.take(runs); err != nil {
		return base.Failure(err)
	}
	if err := o.print(cmd.OutOrStdout(), &p.result); err != nil {
		return base.Failure(err)
	}
	if err := o.writeReport(&p.result); err != nil {
		return base.Failure(err)
	}
	if p.result.Interrupted {
		return errors.New("interrupted: what is shown is of the time until then, and marked")
	}
	return p.judge()
}

// texts are what the flags say that have a language of their own.
type texts struct {
	metrics replay.Metrics
	limits  []usage.Limits
	usage   []usage.Spec
	gate    *condition.Condition
}

func (o *whatIfOptions) parse() (t texts, err error) {
	if t.metrics, err = replay.ParseMetrics(o.metrics); err != nil {
		return t, fmt.Errorf("--metrics: %w", err)
	}
	if t.limits, err = usage.ParseLimits(o.limits); err != nil {
		return t, fmt.Errorf("--limits: %w", err)
	}
	for _, text := range o.usage {
		spec, err := usage.Parse(text)
		if err != nil {
			return t, fmt.Errorf("--usage: %w", err)
		}
		t.usage = append(t.usage, spec)
	}
	if t.gate, err = condition.New(o.failOn); err != nil {
		return t, fmt.Errorf("--fail-on: %w", err)
	}
	return t, nil
}

// plan reads all that is given, and finds what is wrong with it before anything
// runs.
func (o *whatIfOptions) plan(ctx context.Context, in io.Reader, warn func(string)) (*plan, error) {
	t, err := o.parse()
	if err != nil {
		return nil, err
	}
	compared, err := readProfiles(ctx, o.profiles, warn)
	if err != nil {
		return nil, err
	}
	columns, err := o.columns(compared)
	if err != nil {
		return nil, err
	}
	from, err := o.source(in)
	if err != nil {
		return nil, err
	}
	read, err := source.Open(from)
	if err != nil {
		return nil, err
	}
	for _, warning := range read.Warnings {
		warn(warning)
	}
	input := read.Input(o.seed, t.limits[0])
	if o.generate != "" && o.seeds > 1 {
		input.Assumed = append(input.Assumed, "nodes and pods are generated anew with each seed; the numbers here are of the first")
	}
	p := &plan{gate: t.gate, columns: columns, result: result.Result{
		APIVersion: result.APIVersion, Kind: result.Kind,
		Source:  result.Source{Name: read.Name, Nodes: len(input.Nodes), Pods: len(input.Pods)},
		Assumed: append(input.Assumed, fmt.Sprintf("what pods use is generated, with the seeds %d to %d", o.seed, o.seed+uint64(o.seeds)-1)),
		Settings: result.Settings{
			StepSeconds: replay.Step, TailSeconds: int64(o.tail.Seconds()), Level: result.Level,
			Metrics: result.Metrics{IntervalSeconds: t.metrics.Interval, DelaySeconds: t.metrics.Delay, WindowSeconds: t.metrics.Window},
		},
	}}
	if err := addAutoscaler(&p.result, columns, input.Nodes); err != nil {
		return nil, err
	}
	for _, column := range columns {
		p.result.Profiles = append(p.result.Profiles, column.name)
	}
	for i := range o.seeds {
		p.result.Seeds = append(p.result.Seeds, o.seed+uint64(i))
	}
	common := job.Job{Source: from, Metrics: t.metrics, Tail: p.result.Settings.TailSeconds}
	for _, limits := range t.limits {
		for _, use := range t.usage {
			scenario := result.Scenario{Usage: use.String(), Profiles: []result.Profile{}}
			if !read.HasLimits {
				scenario.Limits = limits.String()
			}
			p.result.Scenarios = append(p.result.Scenarios, scenario)
			common.Limits, common.Usage = limits, use
			p.add(common)
		}
	}
	return p, nil
}

// add adds the jobs of a scenario.
func (p *plan) add(common job.Job) {
	for _, column := range p.columns {
		for i, seed := range p.result.Seeds {
			common.Profile, common.Autoscaler = column.profile, column.autoscaler
			common.Seed, common.Course = seed, i == 0
			p.jobs = append(p.jobs, common)
		}
	}
}

// readProfiles reads profiles, and makes sure that a scheduler can be made of each.
func readProfiles(ctx context.Context, names []string, warn func(string)) ([]profiles.Profile, error) {
	var read []profiles.Profile
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return nil, fmt.Errorf("--profile: %s is there twice", name)
		}
		seen[name] = true
		profile, err := profiles.Read(name)
		if err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
		cfg, err := profile.Config()
		if err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
		if warning := config.LegacyWarning(cfg.APIVersion); warning != "" {
			warn(name + ": " + warning)
		}
		if len(cfg.Extenders) > 0 {
			warn(name + ": its extenders are not asked")
		}
		trial, cancel := context.WithCancel(ctx)
		_, err = engine.New(trial, engine.Cluster{}, engine.Options{Config: cfg})
		cancel()
		if err != nil {
			return nil, fmt.Errorf("--profile: %s: %w", name, err)
		}
		read = append(read, profile)
	}
	return read, nil
}

// take puts the runs where they belong, and compares.
func (p *plan) take(runs []*result.Run) error {
	for i := range p.result.Scenarios {
		scenario := &p.result.Scenarios[i]
		for _, column := range p.columns {
			profile := result.Profile{Name: column.name, Slack: column.slack, Runs: []result.Run{}}
			for range p.result.Seeds {
				run := runs[0]
				runs = runs[1:]
				if run != nil {
					profile.Runs = append(profile.Runs, *run)
				}
				p.result.Interrupted = p.result.Interrupted || run == nil || run.Interrupted
			}
			scenario.Profiles = append(scenario.Profiles, profile)
		}
		if err := scenario.Compare(); err != nil {
			return err
		}
	}
	return nil
}

func (o *whatIfOptions) print(out io.Writer, r *result.Result) error {
	if o.output.Format == formatHTML {
		return whatifreport.Write(out, r)
	}
	if o.output.Format == base.FormatTable {
		return printResult(out, r)
	}
	return o.output.Print(out, r, nil)
}

// judge asks the condition of every scenario.
func (p *plan) judge() error {
	if p.gate == nil {
		return nil
	}
	for i := range p.result.Scenarios {
		is, err := p.gate.Holds(&p.result, i)
		if err != nil {
			return fmt.Errorf("--fail-on: %w", err)
		}
		if is {
			return base.WithExitCode(base.ExitCondition, fmt.Errorf("--fail-on: true with %s", describeScenario(&p.result.Scenarios[i])))
		}
	}
	return nil
}

// RunCommand is what a process is started with that runs one job.
const RunCommand = "run-one"

// NewRunCommand returns the hidden command that runs one job.
func NewRunCommand() *cobra.Command {
	return &cobra.Command{
		Use:    RunCommand,
		Short:  "Run the job on standard input (for plimsoll itself)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return job.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// selfCommand is this program, started to run a job.
func selfCommand(ctx context.Context) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	cmd := exec.CommandContext(ctx, program, RunCommand)
	cmd.Args[0] = os.Args[0]
	return cmd
}
