package whatif

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// backtestOptions are the flags of plimsoll backtest.
type backtestOptions struct {
	source  generate.Source
	profile string
	seed    uint64
	output  base.Output
}

// NewBacktestCommand returns the command plimsoll backtest.
func NewBacktestCommand() *cobra.Command {
	var o backtestOptions
	cmd := &cobra.Command{
		Use:   "backtest --recording FILE",
		Short: "Measure how well the simulation reproduces a recording",
		Long: `Replay a recording with the profile that was in force, and compare the outcome with
what was measured: overload, load of nodes, waiting time and nodes used. The differences
are the error of the model. Every result of plimsoll simulate and plimsoll compare over
the recording states them.

The overload that was measured is computed from the recorded usage, with the recorded
node of each pod. kube-scheduler selects at random among nodes with equal scores, so
that pods can be on other nodes than recorded even if the model is exact.`,
		Example: `  # Backtest with the default profile of kube-scheduler.
  plimsoll backtest --recording week.ndjson.gz

  # Backtest the second day with the configuration of the scheduler.
  plimsoll backtest --recording week.ndjson.gz,from=24h,to=48h --profile scheduler.yaml -o json`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	input.AddRecordingFlag(cmd, &o.source.Recording)
	flags.StringVar(&o.profile, "profile", "default", "profile that was in force: built-in profile, or file with a "+
		"KubeSchedulerConfiguration")
	flags.StringVar(&o.source.Usage, "usage", generate.Beta, "usage of pods without recorded usage, as in plimsoll simulate")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of generated usage")
	input.AddStrictFlag(cmd, &o.source.Strict)
	o.output.AddFlag(cmd)
	completeWith(cmd, "profile", cobra.ShellCompDirectiveDefault, engine.BuiltInProfiles...)
	return cmd
}

func (o *backtestOptions) run(cmd *cobra.Command) error {
	if o.source.Recording == "" {
		return errors.New("--recording: required: a file written by plimsoll record")
	}
	job := compare.Job{Source: o.source, Seed: o.seed, Metrics: replay.DefaultMetrics}
	var err error
	if job.Profile, err = engine.ReadConfig(o.profile); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	if _, err := job.Profile.Config(); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	r, err := compare.Backtest(cmd.Context(), job, base.Warnings(cmd.ErrOrStderr()), runJobs(cmd.ErrOrStderr()))
	switch {
	case cmd.Context().Err() != nil:
		return base.Failure(errors.New("interrupted"))
	case err != nil:
		return err
	}
	return o.output.Print(cmd.OutOrStdout(), r, func(out io.Writer) { printBacktest(out, &o.output, r) })
}

// printBacktest prints the summary, a table of the figures, and the assumptions.
func printBacktest(out io.Writer, o *base.Output, r *result.Result) {
	section := &report.Section{Title: "figure", Head: []string{"figure", "measured", "simulated", "error"}}
	for i := range r.Backtest.Figures {
		f := &r.Backtest.Figures[i]
		section.Rows = append(section.Rows, []string{f.Title(), format.Plain(f.Measured), format.Plain(f.Simulated), f.ErrorText()})
	}
	p := r.Backtest.Placements
	section.Items = []string{
		fmt.Sprintf("pods placed by the scheduler: %d on the kind of node on which they ran, %d on another kind, %d that never ran",
			p.Same, p.Other, p.NeverScheduled),
	}
	Print(out, o, &report.Document{
		Result:   &result.Result{Backtest: r.Backtest, Assumed: r.Assumed},
		About:    fmt.Sprintf("%s: %s, %s", r.Source.Name, format.Of(r.Source.Nodes, "node"), format.Of(r.Source.Pods, "pod")),
		Sections: []*report.Section{section},
	})
}
