package whatif

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/source"
)

// whatIfOptions are the flags of plimsoll simulate and plimsoll compare.
type whatIfOptions struct {
	profiles   []string
	files      []string
	snapshot   string
	reschedule bool
	trace      string
	generate   string
	pack       int
	limits     string
	usage      []string
	metrics    string
	// autoscaler has its groups, slack what it holds, one after the other.
	autoscaler []string
	slack      []string
	tail       time.Duration
	seed       uint64
	seeds      int
	failOn     string
	output     base.Output
	report     string
	force      bool
}

// asHTML is a form of the results that only these commands have.
const asHTML = "html"

// maxSeeds bounds how many runs there are of each kind, maxPack how many pods come
// in a second.
const (
	maxSeeds = 1000
	maxPack  = 1_000_000
)

// inputHelp is what both commands say on what they run over.
const inputHelp = `The cluster comes from one of
  -f FILES                      manifests, as kubectl get nodes,pods -A -o yaml prints them
  --snapshot FILE               what plimsoll snapshot has written
  --trace openb:NODES.csv,PODS.csv
  --trace alibaba2018:DIR       optionally ,from=SECOND,to=SECOND,memory-gib=N
  --generate nodes=N,pods=N     and shapes, replicas, fill, best-effort, over, bursts, life, ...

What the input does not say is generated with the seed, and named as such in the
answer: what pods use (--usage), and the limits of pods in traces (--limits).
Profiles are files with a KubeSchedulerConfiguration, or ready-made: default,
most-allocated, limits, allocatable-least, allocatable-most, low-risk,
low-risk+limits.

In a cluster that runs, most pods have a node, and only the others are to be placed.
With --reschedule all of them come anew, so that profiles can differ in where they
put them.

` + scaleHelp + `

Ctrl-C ends the runs; what they have come to is shown, and marked.`

// NewSimulateCommand returns the command plimsoll simulate.
func NewSimulateCommand() *cobra.Command {
	var o whatIfOptions
	var profile string
	cmd := &cobra.Command{
		Use:   "simulate (-f FILES | --snapshot FILE | --trace TRACE | --generate SPEC)",
		Short: "Run a cluster through time with a profile of the scheduler",
		Long: `Run a cluster through time with the code of the real scheduler, on a virtual
clock, and show what comes of it.

` + inputHelp,
		Example: `  # A made-up cluster with the default profile.
  plimsoll simulate --generate nodes=50,pods=1500

  # Your cluster with your profile.
  kubectl get nodes,pods -A -o yaml | plimsoll simulate -f - --profile scheduler.yaml

  # Bursts of pods, an autoscaler, and 10 % of room to spare.
  plimsoll simulate --generate nodes=10,pods=600,over=7200,bursts=6 \
    --autoscaler shape=16x64,boot=120,cost=0.80 --slack 10%`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.profiles = []string{profile}
			if len(o.slack) > 1 {
				return fmt.Errorf("--slack: found %d, want one; plimsoll compare takes several", len(o.slack))
			}
			return o.run(cmd)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "default", "a ready-made profile, or a file with a KubeSchedulerConfiguration")
	o.addFlags(cmd)
	return cmd
}

// NewCompareCommand returns the command plimsoll compare.
func NewCompareCommand() *cobra.Command {
	var o whatIfOptions
	cmd := &cobra.Command{
		Use:   "compare (--profile A --profile B... | --slack A,B...) (-f FILES | --snapshot FILE | --trace TRACE | --generate SPEC)",
		Short: "Run a cluster through time with several profiles, and compare",
		Long: `Run a cluster through time with several profiles of the scheduler, and show by
how much the others differ from the first. With --seeds there is an interval to
each difference: of the mean over seeds, at 95 %.

` + inputHelp,
		Example: `  # What would limits change, and is it more than chance?
  plimsoll compare --profile default --profile limits --generate nodes=50,pods=1500 --seeds 10

  # A gate for a pipeline: exit code 3 if the new profile overloads nodes for longer.
  plimsoll compare --profile old.yaml --profile new.yaml -f cluster.yaml --seeds 10 \
    --fail-on 'differences["new.yaml"].overloadMinutes.low > 0.0'

  # Where would the pods of your cluster be, had they come under another profile?
  plimsoll snapshot -o s.tar.gz
  plimsoll compare --profile default --profile limits --snapshot s.tar.gz --reschedule

  # A page to show to others.
  plimsoll compare --profile default --profile low-risk --generate nodes=50,pods=1500 \
    --seeds 10 --report report.html

  # What does slack cost, and how much less do pods wait?
  plimsoll compare --slack 0%,5%,10%,20% --generate nodes=10,pods=600,over=7200,bursts=6 \
    --autoscaler shape=16x64,boot=120,cost=0.80 --seeds 5

  # Over limits and shapes of use.
  plimsoll compare --profile default --profile low-risk --generate nodes=50,pods=1500 \
    --limits ratio=1+2+4 --usage beta --usage bursts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.profiles) == 0 && len(o.slack) > 1 {
				o.profiles = []string{"default"}
			}
			if len(o.profiles)*max(len(o.slack), 1) < 2 {
				return errors.New("--profile: want at least two to compare, or --slack with at least two rates")
			}
			return o.run(cmd)
		},
	}
	cmd.Flags().StringArrayVar(&o.profiles, "profile", nil, "a ready-made profile, or a file with a KubeSchedulerConfiguration; repeated, the first is the one compared with")
	o.addFlags(cmd)
	return cmd
}

func (o *whatIfOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file or folder with manifests of nodes and pods, - for standard input; may be repeated")
	flags.StringVar(&o.snapshot, "snapshot", "", "a snapshot of a cluster, as plimsoll snapshot writes it")
	flags.BoolVar(&o.reschedule, "reschedule", false, "with -f or --snapshot: let all pods come anew in the order of their creation, also those that have a node, but for those of DaemonSets and mirror pods")
	flags.StringVar(&o.trace, "trace", "", "a trace: openb:NODES.csv,PODS.csv or alibaba2018:DIR")
	flags.StringVar(&o.generate, "generate", "", "what to make up, such as nodes=500,pods=15000")
	flags.IntVar(&o.pack, "pack", -1, "let the pods of a trace arrive so many to a second and never end, 0 for when the trace has them (default 1 for openb, whose own times never fill its cluster, 0 for others); with --reschedule likewise, 0 for all at once (default 1)")
	flags.Lookup("pack").DefValue = "0" // which is not shown: the text says more
	flags.StringVar(&o.limits, "limits", "ratio=2", "limits of pods without any, as multiples of their requests: ratio=1+2+4, memory=1, unlimited=0.1")
	flags.StringArrayVar(&o.usage, "usage", []string{"beta"}, "what pods use: constant, beta, bimodal, bursts, lognormal, pareto or diurnal, with keys as in beta:mean=0.4,cv=0.6, or cpu=SHAPE;memory=SHAPE; may be repeated")
	flags.StringVar(&o.metrics, "metrics", "interval=60,delay=60,window=900", "how load is measured, in seconds")
	o.addScaleFlags(cmd)
	flags.DurationVar(&o.tail, "tail", time.Hour, "for how long a run goes on after the last pod has come")
	flags.Uint64Var(&o.seed, "seed", 1, "what generated things are drawn by")
	flags.IntVar(&o.seeds, "seeds", 1, "how many seeds, from that one on")
	flags.StringVar(&o.failOn, "fail-on", "", "exit with code 3 if this expression in CEL is true, over profiles, differences, limits, usage and result")
	o.output.AddFlag(cmd, asHTML)
	flags.StringVar(&o.report, "report", "", "also write a report to this file: HTML that needs no network")
	flags.BoolVar(&o.force, "force", false, "with --report: replace the file if it is there")
	_ = cmd.MarkFlagFilename("snapshot", "tar.gz", "tgz")
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profiles.Names, cobra.ShellCompDirectiveDefault))
	_ = cmd.RegisterFlagCompletionFunc("usage", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	_ = cmd.RegisterFlagCompletionFunc("trace", cobra.FixedCompletions([]string{"openb:", "alibaba2018:"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

func kindNames() []string {
	names := make([]string, len(usage.Kinds))
	for i, kind := range usage.Kinds {
		names[i] = string(kind)
	}
	return names
}

// validate says what is wrong with the flags by themselves.
func (o *whatIfOptions) validate(cmd *cobra.Command) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	if err := o.validateInput(cmd); err != nil {
		return err
	}
	if err := o.validateScale(); err != nil {
		return err
	}
	const step = replay.Step * time.Second
	switch {
	case o.force && o.report == "":
		return errors.New("--force: want it with --report")
	case o.seeds < 1 || o.seeds > maxSeeds:
		return fmt.Errorf("--seeds: found %d, want a whole number from 1 to %d", o.seeds, maxSeeds)
	case o.tail < step || o.tail > 30*24*time.Hour || o.tail%step != 0:
		return fmt.Errorf("--tail: found %s, want whole minutes from 1m to 720h", o.tail)
	}
	return o.checkReport()
}

// validateInput says what is wrong with what there is to run over.
func (o *whatIfOptions) validateInput(cmd *cobra.Command) error {
	packed := cmd.Flags().Changed("pack")
	var given []string
	for _, flag := range []string{"filename", "snapshot", "trace", "generate"} {
		if cmd.Flags().Changed(flag) {
			given = append(given, "--"+flag)
		}
	}
	switch {
	case len(given) == 0:
		return errors.New("nothing to run over: want one of --filename, --snapshot, --trace and --generate")
	case len(given) > 1:
		return fmt.Errorf("%s: want one of them", strings.Join(given, ", "))
	case cmd.Flags().Changed("limits") && o.objects():
		return errors.New("--limits: the pods of manifests have the limits that they declare; want it with --trace or --generate")
	case o.reschedule && !o.objects():
		return errors.New("--reschedule: the pods of traces come anew as it is; want it with --filename or --snapshot")
	case packed && o.trace == "" && !o.reschedule:
		return errors.New("--pack: want it with --trace or --reschedule")
	case packed && (o.pack < 0 || o.pack > maxPack):
		return fmt.Errorf("--pack: found %d, want a whole number from 0 to %d", o.pack, maxPack)
	}
	return nil
}

// objects reports whether what there is to run over is Kubernetes objects.
func (o *whatIfOptions) objects() bool { return len(o.files) > 0 || o.snapshot != "" }

// source returns what to read, with standard input in it.
func (o *whatIfOptions) source(in io.Reader) (source.Spec, error) {
	s := source.Spec{Files: o.files, Snapshot: o.snapshot, Reschedule: o.reschedule, Trace: o.trace, Generate: o.generate, Pack: o.pack}
	if !slices.Contains(o.files, "-") {
		return s, nil
	}
	var err error
	s.Stdin, err = io.ReadAll(in)
	return s, err
}
