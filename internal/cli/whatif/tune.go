package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/tune"
)

// tuneOptions are the flags of plimsoll tune.
type tuneOptions struct {
	whatIfOptions

	// search has the flags that are not parsed.
	search    tune.Options
	current   string
	objective string
	config    string
}

// Defaults of plimsoll tune, and bounds of its flags.
const (
	tuneSeeds   = 10
	tuneConfirm = 20
	tuneRounds  = 3
	tuneRuns    = 2000
	maxRounds   = 20
	maxTuneRuns = 1_000_000
	configMode  = 0o644
)

// NewTuneCommand returns the command plimsoll tune.
func NewTuneCommand() *cobra.Command {
	var o tuneOptions
	cmd := &cobra.Command{
		Use:   "tune (-f FILES | --recording FILE | --generate SPEC)",
		Short: "Search the scheduler configuration with which a cluster does best",
		Long: `Search the plugins, weights and arguments with which a simulated cluster does best, and
write a KubeSchedulerConfiguration.

The search races configurations, which are simulated with the same seeds: first the one
in force (--current) and the built-in profiles, then in each of --rounds rounds the
neighbors of the best two. A configuration that is clearly worse than the best one is
dropped early. The winner is compared with the configuration in force on --confirm seeds
that the search has not used. Unless it is clearly better there, the result is to keep
what you have, and the configuration that is printed or written is the one in force.

The space is the weight of NodeResourcesFit (0, 1, 2; LeastAllocated or MostAllocated),
NodeResourcesBalancedAllocation (0, 1, 2), NodeResourcesLimits (0, 1, 2, 5),
LowRiskOverCommitment (0, 1, 2, 5; riskLimitWeight 0 to 1 in steps of 0.25),
PredictedUtilization (0, 2, 5, 10; deviations 0 to 2 in steps of 0.5) and
NodeResourcesAllocatable (0, 1, 2; Least or Most). --exclude keeps the settings of a
plugin as they are, for example if no load source is available.

--objective is the weighted sum of figures to make small, by their names in -o json:
overloadMinutes, unschedulable, nodesUsed, throttledCoreSeconds, memoryOverruns,
victims, pendingSecondsMean, with --autoscaler also cost, nodeHours and others.

` + sharedHelp + ` The best configuration
so far is kept, marked as not confirmed.

Exit codes: 0 with a result, whether it is a change or not; 1 if a simulation fails; 2 for
invalid input and after an interruption; 3 if --fail-on is true.`,
		Example: `  # Find a configuration that overloads nodes for less time, and write it to a file.
  plimsoll tune --generate nodes=20,pods=600,fill=0.9,best-effort=0.1,over=3600 --usage bursts:mean=0.7 \
    --rounds 1 --seeds 4 --confirm 12 --write-config tuned.yaml

  # Use fewer nodes, as long as pods find a place: a node is worth 10 node minutes of overload.
  plimsoll tune --generate nodes=20,pods=400,over=3600 --objective overloadMinutes=1,unschedulable=1000,nodesUsed=10 \
    --rounds 1 --seeds 4 --confirm 12

  # Improve your own configuration for your own cluster, without plugins that read load, and write a report.
  plimsoll snapshot -o s.plrec
  plimsoll tune --recording s.plrec --reschedule --current scheduler.yaml \
    --exclude LowRiskOverCommitment,PredictedUtilization --report report.html

  # Fail a pipeline with exit code 3 if there is a configuration with clearly less overload.
  plimsoll tune -f cluster.yaml --current scheduler.yaml --fail-on 'difference.overloadMinutes<0'`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.current, "current", "default", "configuration in force: built-in profile, or file with a KubeSchedulerConfiguration")
	flags.StringVar(&o.objective, "objective", tune.DefaultObjective, "figures with the weights of their sum, which is made small")
	flags.StringSliceVar(&o.search.Exclude, "exclude", nil, "plugin whose settings are not changed; may be repeated")
	seeds := flags.Lookup("seeds")
	seeds.Usage, seeds.DefValue = "number of seeds of the search, at most", fmt.Sprint(tuneSeeds)
	o.Seeds = tuneSeeds
	flags.IntVar(&o.search.Confirm, "confirm", tuneConfirm, "number of seeds of the confirmation, those after the seeds of the search")
	flags.IntVar(&o.search.Rounds, "rounds", tuneRounds, "number of rounds of the search, at most")
	flags.IntVar(&o.search.MaxRuns, "max-runs", tuneRuns, "number of simulations of the search, at most")
	flags.StringVar(&o.config, "write-config", "", "write the resulting KubeSchedulerConfiguration to this file")
	base.Rare(cmd, "autoscaler", "slack", "seeds", "confirm", "rounds", "max-runs")
	completeWith(cmd, "current", cobra.ShellCompDirectiveDefault, engine.BuiltInProfiles...)
	completeWith(cmd, "exclude", cobra.ShellCompDirectiveNoFileComp, tune.Plugins()...)
	return cmd
}

// run searches and prints the result.
func (o *tuneOptions) run(cmd *cobra.Command) error {
	if err := o.validateTune(cmd); err != nil {
		return err
	}
	options, err := o.tuneOptions(cmd)
	if err != nil {
		return err
	}
	tuning, err := tune.New(context.WithoutCancel(cmd.Context()), options)
	if err != nil {
		return err
	}
	r, err := tuning.Run(cmd.Context())
	if err != nil {
		return base.Failure(err)
	}
	return o.finish(r, errors.Join(o.printTuning(cmd.OutOrStdout(), r), o.writeConfig(cmd.ErrOrStderr(), r)))
}

// validateTune returns an error for an invalid flag or combination of flags.
func (o *tuneOptions) validateTune(cmd *cobra.Command) error {
	if err := o.validate(cmd); err != nil {
		return err
	}
	if !cmd.Flags().Changed("seeds") {
		o.Seeds = tuneSeeds
	}
	switch {
	case o.Seeds < 2:
		return base.InvalidValue("seeds", o.Seeds, fmt.Sprintf("between 2 and %d", maxSeeds))
	case o.search.Confirm < 2 || o.search.Confirm > maxSeeds:
		return base.InvalidValue("confirm", o.search.Confirm, fmt.Sprintf("between 2 and %d", maxSeeds))
	case o.search.Rounds < 1 || o.search.Rounds > maxRounds:
		return base.InvalidValue("rounds", o.search.Rounds, fmt.Sprintf("between 1 and %d", maxRounds))
	case o.search.MaxRuns < 1 || o.search.MaxRuns > maxTuneRuns:
		return base.InvalidValue("max-runs", o.search.MaxRuns, fmt.Sprintf("between 1 and %d", maxTuneRuns))
	case len(o.slack) > 1:
		return fmt.Errorf("--slack: found %d values: must be one", len(o.slack))
	case o.config == "":
		return nil
	}
	return o.configFile().Check()
}

// tuneOptions parses the flags.
func (o *tuneOptions) tuneOptions(cmd *cobra.Command) (tune.Options, error) {
	options := o.search
	options.Seeds, options.Run = o.Seeds, runJobs(cmd.ErrOrStderr())
	options.Report = func(p tune.Progress) { printProgress(base.Escaped(cmd.ErrOrStderr()), p) }
	if err := o.parse(cmd); err != nil {
		return options, err
	}
	if o.Source.Recording != "" { // search and confirmation use different parts
		o.Source.Parts = o.Seeds + o.search.Confirm
	}
	o.Command = commandLine(cmd)
	if err := o.rescheduleIfPlaced(cmd); err != nil {
		return options, err
	}
	options.Compare = o.Options
	var err error
	if options.Current, err = engine.ReadConfig(o.current); err != nil {
		return options, fmt.Errorf("--current: %w", err)
	}
	if options.Objective, err = tune.ParseObjective(o.objective, len(o.autoscaler) > 0); err != nil {
		return options, fmt.Errorf("--objective: %w", err)
	}
	return options, nil
}

// configFile returns the file in --write-config.
func (o *tuneOptions) configFile() base.NewFile {
	return base.NewFile{Flag: "--write-config", Path: o.config, Force: o.force, Mode: configMode}
}

// writeConfig writes the configuration if --write-config is set.
func (o *tuneOptions) writeConfig(errOut io.Writer, r *result.Result) error {
	if o.config == "" {
		return nil
	}
	err := o.configFile().Write(func(out io.Writer) error {
		_, err := io.WriteString(out, r.Tuning.Configuration)
		return err
	})
	if err == nil {
		fmt.Fprintf(base.Escaped(errOut), "plimsoll: wrote %s: the configuration of %s\n", o.config, r.Tuning.Profile)
	}
	return err
}

// printTuning prints the result in the format of --output.
func (o *tuneOptions) printTuning(out io.Writer, r *result.Result) error {
	escaped, table := base.Escaped(out), o.output.Format == base.FormatTable || o.output.Format == base.FormatWide
	isKept := r.Tuning.Profile == r.Profiles[0]
	switch {
	case table && isKept && r.Tuning.Difference == nil: // nothing was confirmed
		printer{escaped, &o.output}.paragraph(r.Tuning.Verdict.Sentence)
		return nil
	case table:
		printSearch(escaped, &o.output, r)
	case o.output.Format == base.FormatMarkdown:
		printer{escaped, &o.output}.strong(r.Tuning.Verdict.Sentence)
	}
	err := o.print(out, r)
	if table && o.config == "" && !isKept {
		fmt.Fprintf(escaped, "\n%s", r.Tuning.Configuration)
	}
	return err
}
