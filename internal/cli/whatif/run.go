package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	whatifreport "github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/condition"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

func (o *whatIfOptions) run(cmd *cobra.Command) error {
	if err := o.validate(cmd); err != nil {
		return err
	}
	failOn, err := condition.New(o.failOn)
	if err != nil {
		return fmt.Errorf("--fail-on: %w", err)
	}
	options, err := o.compareOptions(cmd.InOrStdin())
	if err != nil {
		return err
	}
	options.Warn = base.Warnings(cmd.ErrOrStderr())
	// If interrupted, the command still prints the result, without runs.
	plan, err := compare.NewPlan(context.WithoutCancel(cmd.Context()), options)
	if err != nil {
		return err
	}
	if err := failOn.Check(conditionKeys(plan.Names(), options)); err != nil {
		return fmt.Errorf("--fail-on: %w", err)
	}
	runner, err := o.cluster.runner(cmd)
	if err != nil {
		return err
	}
	r, err := plan.Run(cmd.Context(), runner)
	if err != nil {
		return base.Failure(err)
	}
	if err := o.print(cmd.OutOrStdout(), r); err != nil {
		return base.Failure(err)
	}
	if err := o.writeReport(r); err != nil {
		return base.Failure(err)
	}
	if r.Interrupted {
		return errors.New("interrupted: the results are incomplete and marked")
	}
	return checkFailOn(failOn, r)
}

// conditionKeys returns the keys that --fail-on may use.
func conditionKeys(profiles []string, options compare.Options) condition.Keys {
	keys := condition.Keys{Profiles: profiles, Intervals: options.Seeds > 1}
	met := result.AnyRun
	if options.Autoscaler != nil {
		met = result.WithAutoscaler
	}
	if len(options.Slack) > 0 {
		met = result.WithSlack
	}
	for _, figure := range result.Figures {
		if figure.Requires <= met {
			keys.Figures = append(keys.Figures, figure.Name)
		}
	}
	return keys
}

// compareOptions parses the flags.
func (o *whatIfOptions) compareOptions(in io.Reader) (compare.Options, error) {
	options := compare.Options{Profiles: o.profiles, TailSeconds: int64(o.tail.Seconds()), Seed: o.seed, Seeds: o.seeds, Export: o.written}
	var err error
	if options.Metrics, err = replay.ParseMetrics(o.metrics); err != nil {
		return options, fmt.Errorf("--metrics: %w", err)
	}
	if options.Limits, err = usage.ParseLimits(o.limits); err != nil {
		return options, fmt.Errorf("--limits: %w", err)
	}
	for _, text := range o.usage {
		spec, err := usage.Parse(text)
		if err != nil {
			return options, fmt.Errorf("--usage: %w", err)
		}
		options.Usage = append(options.Usage, spec)
	}
	if err := o.addScaleOptions(&options); err != nil {
		return options, err
	}
	options.Source, err = o.source(in)
	return options, err
}

func (o *whatIfOptions) print(out io.Writer, r *result.Result) error {
	if o.output.Format == formatHTML {
		return whatifreport.Write(out, r)
	}
	switch o.output.Format {
	case base.FormatTable:
		return printResult(base.Fitted(out), r)
	case base.FormatMarkdown:
		printMarkdown(base.Escaped(out), r)
		return nil
	}
	return o.output.Print(out, r, nil)
}

// checkFailOn returns an error if the condition of --fail-on is true in a scenario.
func checkFailOn(c *condition.Condition, r *result.Result) error {
	if c == nil {
		return nil
	}
	for i := range r.Scenarios {
		isTrue, err := c.Evaluate(r, i)
		if err != nil {
			return fmt.Errorf("--fail-on: %w", err)
		}
		if isTrue {
			return base.WithExitCode(base.ExitCondition, fmt.Errorf("--fail-on: true with %s", describeScenario(&r.Scenarios[i])))
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
