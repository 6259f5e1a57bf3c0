// Package whatif has the commands that simulate clusters: simulate and compare.
package whatif

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// whatIfOptions are the flags of plimsoll simulate and plimsoll compare.
type whatIfOptions struct {
	// Options has the flags that are not parsed, and from parse on also the parsed values of the other flags.
	compare.Options
	resultOptions

	scenario string
	// autoscaler has one entry for each group of nodes.
	autoscaler []string
	slack      []string
	tail       time.Duration
	// shard is the part of the seeds to run: the flag --shard, which only compare has.
	shard string
}

const (
	// compareSeeds is the default of --seeds of comparisons, for confidence intervals.
	compareSeeds = 5
	// maxSeeds is the maximum of --seeds.
	maxSeeds = 1000
)

// inputHelp is the help text on the input of plimsoll compare.
const inputHelp = `The input is one of
  -f FILES                      manifests, as printed by kubectl get nodes,pods -A -o yaml
  --recording FILE              written by plimsoll snapshot, or by plimsoll record, optionally ,from=24h,to=48h
  --generate nodes=N,pods=N     and shapes, zones, replicas, batch, fill, memory-fill, cpu-cv,
                                memory-cv, best-effort, guaranteed, gpu; over, life, bursts,
                                burst-share; or churn, life, life-cv

  --scenario FILE               YAML with the keys of --generate, limits and metrics

docs/whatif.md explains these keys and those of --usage.

Data that the input does not have is generated from the seed and listed as such in the
result: the usage of pods (--usage), and the limits of generated pods, twice their requests.
Profiles are files with a KubeSchedulerConfiguration or built-in: default,
most-allocated, limits, allocatable-least, allocatable-most, low-risk, predicted, packed,
batch.

In a running cluster, most pods have a node, and only pending pods are scheduled. With
--reschedule, the default if no pod is pending, all pods are scheduled again.

` + scaleHelp + interruptHelp

// interruptHelp is the help text on interruptions.
const interruptHelp = `

If interrupted (Ctrl-C), the command prints the results so far and marks them.`

// sharedHelp is the help text on the input of the other commands.
const sharedHelp = `The input, the profiles, the usage of pods, autoscalers and slack are given as to plimsoll
compare, whose help describes them.` + interruptHelp

// NewSimulateCommand returns the command plimsoll simulate.
func NewSimulateCommand() *cobra.Command {
	var o whatIfOptions
	cmd := &cobra.Command{
		Use:   "simulate (-f FILES | --recording FILE | --generate SPEC | --scenario FILE)",
		Short: "Simulate a cluster with one scheduler profile",
		Long: `Simulate a cluster over time with the code of kube-scheduler, on a virtual clock, and
show the outcome.

` + sharedHelp,
		Example: `  # Simulate a generated cluster with the default profile.
  plimsoll simulate --generate nodes=50,pods=1500,fill=0.9,best-effort=0.1 --usage bursts:mean=0.7

  # Simulate a live cluster with the profile in scheduler.yaml.
  kubectl get nodes,pods -A -o yaml | plimsoll simulate -f - --profile scheduler.yaml

  # Simulate bursts of pods, an autoscaler, and 10 % slack.
  plimsoll simulate --generate nodes=2,shapes=16x64,fill=3,pods=200,over=3600,bursts=4,life=1800 \
    --autoscaler shape=16x64,boot=120,cost=0.80 --slack 10%`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, found := range map[string]int{"profile": len(o.Profiles), "slack": len(o.slack)} {
				if found > 1 {
					return fmt.Errorf("--%s: found %d values: must be one; plimsoll compare accepts several", flag, found)
				}
			}
			return o.run(cmd)
		},
	}
	cmd.Flags().StringArrayVar(&o.Profiles, "profile", []string{"default"}, "built-in profile, or file with a KubeSchedulerConfiguration")
	o.addFlags(cmd, 1)
	base.Rare(cmd, "fail-on")
	return cmd
}

// NewCompareCommand returns the command plimsoll compare.
func NewCompareCommand() *cobra.Command {
	var o whatIfOptions
	cmd := &cobra.Command{
		Use: "compare (--profile A --profile B... | --slack A,B... | --requests FILE) " +
			"(-f FILES | --recording FILE | --generate SPEC | --scenario FILE)",
		Short: "Compare scheduler profiles in a simulated cluster",
		Long: `Simulate a cluster over time with several scheduler profiles, and show how the others
differ from the first. Each difference has a 95 % confidence interval of its mean over the
seeds.

` + inputHelp,
		Example: `  # Compare two profiles, and show whether the differences are significant.
  plimsoll compare --profile default --profile predicted \
    --generate nodes=50,pods=1500,fill=0.9,best-effort=0.1,over=7200 \
    --usage bursts:mean=0.7

  # Fail a pipeline with exit code 3 if the new profile overloads nodes for longer.
  plimsoll compare --profile old.yaml --profile new.yaml -f cluster.yaml --seeds 10 \
    --fail-on 'difference.overloadMinutes>0'

  # Schedule all pods of a live cluster again with another profile.
  plimsoll snapshot -o s.ndjson.gz
  plimsoll compare --profile default --profile predicted --recording s.ndjson.gz

  # Write an HTML report.
  plimsoll compare --profile default --profile low-risk \
    --generate nodes=50,pods=1500,fill=0.9,best-effort=0.1,over=7200 --usage bursts:mean=0.7 --report report.html

  # Compare the cost of slack with the pending time of pods.
  plimsoll compare --slack 0%,10%,30% \
    --generate nodes=2,shapes=16x64,fill=3,pods=200,over=3600,bursts=4,life=1800 \
    --autoscaler shape=16x64,boot=120,cost=0.80 --seeds 3

  # Compare with the limits and the usage of a file.
  plimsoll compare --profile default --profile low-risk --scenario examples/scenario.yaml`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.Profiles) == 0 && (len(o.slack) > 1 || o.RequestsName != "") {
				o.Profiles = []string{"default"}
			}
			if o.RequestsName != "" {
				var err error
				if o.Requests, err = input.Requests(o.RequestsName); err != nil {
					return fmt.Errorf("--requests: %w", err)
				}
			}
			for _, text := range o.slack {
				if _, err := slackPolicy(text); err != nil {
					return err
				}
			}
			if o.RequestsName == "" && len(o.Profiles)*max(len(o.slack), 1) < 2 {
				return errors.New("--profile: must be set at least twice, or --slack to at least two rates, or --requests")
			}
			return o.run(cmd)
		},
	}
	cmd.Flags().StringArrayVar(&o.Profiles, "profile", nil, "built-in profile, or file with a KubeSchedulerConfiguration; "+
		"repeat it, the first is the baseline")
	cmd.Flags().StringVar(&o.RequestsName, "requests", "", "also compare each profile with the requests in this file, which plimsoll "+
		"recommend -o json wrote")
	cmd.Flags().StringVar(&o.shard, "shard", "", "run only one of N parts of the seeds: I/N with I from 0, or N in a pod of an "+
		"Indexed Job; plimsoll merge merges the results")
	o.addFlags(cmd, compareSeeds)
	base.Rare(cmd, "force") // its error names it
	return cmd
}

// inputFlags are the flags of the input: exactly one must be set.
var inputFlags = []string{"filename", "recording", "generate", "scenario"}

func (o *whatIfOptions) addFlags(cmd *cobra.Command, seeds int) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.Source.Files, "filename", "f", nil, "file or directory with manifests of nodes and pods, - for standard "+
		"input; may be repeated")
	input.AddRecordingFlag(cmd, &o.Source.Recording)
	input.AddStrictFlag(cmd, &o.Source.Strict)
	flags.BoolVar(&o.Source.Reschedule, "reschedule", false, "with -f or --recording: schedule all pods again in the order of "+
		"their creation, except for mirror pods and pods of DaemonSets")
	flags.StringVar(&o.Source.Generate, "generate", "", "cluster to generate, such as nodes=500,pods=15000")
	flags.StringVar(&o.scenario, "scenario", "", "YAML file with a cluster to generate, limits of pods, and the measurement of the load")
	_ = cmd.MarkFlagFilename("scenario", "yaml", "yml", "json")
	flags.StringVar(&o.Source.Usage, "usage", generate.Beta, "usage of pods: constant, beta, bursts or diurnal, "+
		"with parameters as in beta:mean=0.4,cv=0.6, or cpu=SHAPE;memory=SHAPE")
	o.addScaleFlags(cmd)
	flags.DurationVar(&o.tail, "tail", time.Hour, "simulated time after the arrival of the last pod")
	flags.Uint64Var(&o.Seed, "seed", 1, "first seed of generated data")
	flags.IntVar(&o.Seeds, "seeds", seeds, "number of seeds, by default one of a recording, in which a seed draws the usage that it lacks")
	o.resultOptions.addFlags(cmd)
	cmd.MarkFlagsOneRequired(inputFlags...)
	cmd.MarkFlagsMutuallyExclusive(inputFlags...)
	AddSaturationFlag(cmd, &o.Saturation)
	base.Rare(cmd, "strict", "tail", "seed")
	completeWith(cmd, "profile", cobra.ShellCompDirectiveDefault, engine.BuiltInProfiles...)
	completeWith(cmd, "usage", cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, generate.UsageKinds...)
}

// AddSaturationFlag adds the flag --saturation.
func AddSaturationFlag(cmd *cobra.Command, value *float64) {
	cmd.Flags().Float64Var(value, "saturation", result.DefaultSaturation,
		"fraction of its allocatable CPU above which a node counts as saturated")
	base.CheckFlag(cmd, "saturation", "above 0 and at most 1, such as 0.95", func(text string) bool {
		fraction, err := strconv.ParseFloat(text, 64)
		return err == nil && fraction > 0 && fraction <= 1
	})
	base.Rare(cmd, "saturation")
}

// completeWith sets the completion of a flag.
func completeWith(cmd *cobra.Command, flag string, directive cobra.ShellCompDirective, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, directive))
}

// validate returns an error for an invalid flag or combination of flags.
func (o *whatIfOptions) validate(cmd *cobra.Command) error {
	if o.Source.Reschedule && !o.hasObjects() {
		return errors.New("--reschedule: requires --filename or --recording: all pods of other input are scheduled anyway")
	}
	if o.isOverTime() && !cmd.Flags().Changed("seeds") {
		o.Seeds = 1
	}
	if cmd.Flags().Changed("seed") && !cmd.Flags().Changed("seeds") && o.Seeds > 1 {
		base.Warnings(cmd.ErrOrStderr())(fmt.Sprintf("--seed is the first of %d seeds: --seeds sets their number", o.Seeds))
	}
	if err := o.validateRun(cmd); err != nil {
		return err
	}
	met := result.AnyRun
	switch {
	case len(o.slack) > 0:
		met = result.WithSlack
	case len(o.autoscaler) > 0:
		met = result.WithAutoscaler
	}
	return o.resultOptions.validate(met)
}

// validateRun returns an error for an invalid number of seeds, time or file.
func (o *whatIfOptions) validateRun(cmd *cobra.Command) error {
	const step = replay.Step * time.Second
	var err error
	if o.Shard, err = parseShard(o.shard); err != nil {
		return err
	}
	switch {
	case o.Seeds < 1 || o.Seeds > maxSeeds:
		return base.InvalidValue("seeds", o.Seeds, fmt.Sprintf("between 1 and %d", maxSeeds))
	case o.Shard.Count > o.Seeds:
		return base.InvalidValue("shard", o.shard, fmt.Sprintf("of at most as many parts as --seeds (%d)", o.Seeds))
	case o.shard != "" && (o.output.Format != base.FormatJSON || o.report.Path != ""):
		return errors.New("--shard: requires -o json, without --report: plimsoll merge shows the result of all shards")
	case o.isOverTime() && cmd.Flags().Changed("tail"):
		return errors.New("--tail: must not be set with a recording over a time: a run ends where the recording ends")
	case o.tail < step || o.tail > 30*24*time.Hour || o.tail%step != 0:
		return base.InvalidValue("tail", o.tail, "a multiple of 1m between 1m and 720h")
	}
	return nil
}

// hasObjects reports whether the input is Kubernetes objects.
func (o *whatIfOptions) hasObjects() bool {
	return len(o.Source.Files) > 0 || o.Source.Recording != ""
}

// isOverTime reports whether the input is a recording other than a snapshot.
func (o *whatIfOptions) isOverTime() bool {
	return o.Source.Recording != "" && !recording.IsSnapshot(o.Source.Recording)
}

// readStdin adds the content of standard input to the source if it is read.
func (o *whatIfOptions) readStdin(in io.Reader) (err error) {
	if o.Source.Strict && !o.hasObjects() {
		return errors.New("--strict: requires --filename or --recording")
	}
	if slices.Contains(o.Source.Files, "-") {
		o.Source.Stdin, err = manifest.Buffer(in)
	}
	return err
}
