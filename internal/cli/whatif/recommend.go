package whatif

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// recommendOptions are the flags of plimsoll recommend.
type recommendOptions struct {
	recommend.Options

	generate, usage              string
	wait, policy, write          string
	autoscaler, change, profiles []string
	overload, killed, saturation float64
	isSnapshot                   bool
	output                       base.Output
	report                       base.NewFile
}

const defaultUsage = "diurnal:mean=0.4"

// levers are the values of --change.
var levers = []string{"profile", "requests", "slack"}

// triedProfiles are the profiles that are tried unless --profile names others.
var triedProfiles = []string{"default", "most-allocated", "predicted", "packed"}

// NewRecommendCommand returns the command plimsoll recommend.
func NewRecommendCommand() *cobra.Command {
	o := recommendOptions{report: base.NewFile{Flag: "--report", Kind: base.HTMLPage, Mode: 0o644}}
	cmd := &cobra.Command{
		Use:   "recommend (--recording FILE | --generate SPEC) [--autoscaler SPEC] [--wait p95=5s]",
		Short: "Recommend profile, requests and slack at the lowest cost",
		Long: `Find the configuration of a cluster with the lowest cost that meets the goals: the
scheduler profile, the requests of each workload, and the slack.

The goals are: nodes are not overloaded for longer and not more pods are killed than with
the configuration in force (--overload and --killed set other bounds), and pods wait for
a node at most --wait.

The recording must have usage; a snapshot gives a first look, with two days of usage that
are generated around its one reading. Configurations are fitted on the first two thirds,
and confirmed on the last third, which the search has not seen. docs/recommend.md says
what is tried, and which workloads keep their requests.

Without --autoscaler, the answer is how many nodes are not needed, or CPUs of nodes if
they differ in size, as if all new ones were like the most frequent. Nothing is applied:
-o yaml prints what to apply, and --write writes it to files. Both, and --report, exit
with code 3 if the answer is not confirmed: there is nothing to apply then.`,
		Example: `  # What would the last week have cost, at no more overload and short waits?
  plimsoll recommend --recording week.ndjson.gz --autoscaler shape=16x64,boot=120,cost=0.80 --wait p95=5s

  # Only requests, with a report and one patch file for each workload.
  plimsoll recommend --recording week.ndjson.gz --change requests --report report.html --write recommended

  # Try it without a cluster: a generated day of 15 nodes.
  plimsoll recommend --generate nodes=15,shapes=16x64,pods=600,fill=0.8,churn=86400,life=14400 --usage diurnal:mean=0.4 \
    --autoscaler shape=16x64,boot=120,cost=0.80 --change profile,requests`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *recommendOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	input.AddRecordingFlag(cmd, &o.Source.Recording)
	flags.StringVar(&o.generate, "generate", "", "cluster to generate and record, such as nodes=15,pods=600,churn=86400,life=14400")
	flags.StringVar(&o.usage, "usage", defaultUsage, "with --generate or a snapshot: usage of pods, as for plimsoll compare")
	flags.StringArrayVar(&o.autoscaler, "autoscaler", nil,
		"nodes that an autoscaler adds, such as shape=16x64,max=100,boot=120,cost=0.80; may be repeated")
	flags.StringVar(&o.wait, "wait", "", "percentage of pods and the time within which they must have a node "+
		"(default p99=5s, or as in force if that is longer)")
	flags.Float64Var(&o.overload, "overload", -1, "node minutes of overload a day that are allowed (default: as in force)")
	flags.Float64Var(&o.killed, "killed", -1, "pods killed a day that are allowed (default: as in force)")
	for _, name := range []string{"overload", "killed"} {
		flags.Lookup(name).DefValue = "0" // not printed: the usage states the default
	}
	AddSaturationFlag(cmd, &o.saturation)
	flags.StringSliceVar(&o.change, "change", levers, "what may be changed: profile, requests, slack")
	flags.StringArrayVar(&o.profiles, "profile", nil, "built-in profile, or file with a KubeSchedulerConfiguration; repeat it, the first "+
		"is in force (default "+strings.Join(triedProfiles, ", ")+"; a single one is in force beside these)")
	flags.StringVar(&o.policy, "policy", "", "file with the ResourceSlack in force: its rate, minimum and schedules may be changed")
	flags.StringVar(&o.write, "write", "", "write Helm values, the ResourceSlack and a patch file for each workload to this new folder")
	flags.StringVar(&o.report.Path, "report", "", "also write a self-contained HTML page to this file")
	flags.BoolVar(&o.report.Force, "force", false, "replace an existing report")
	o.output.AddFlag(cmd)
	_ = cmd.MarkFlagFilename("policy", "yaml", "yml", "json")
	_ = cmd.MarkFlagDirname("write")
	cmd.MarkFlagsMutuallyExclusive("recording", "generate")
	cmd.MarkFlagsOneRequired("recording", "generate")
	completeWith(cmd, "profile", cobra.ShellCompDirectiveDefault, engine.BuiltInProfiles...)
	completeWith(cmd, "change", cobra.ShellCompDirectiveNoFileComp, levers...)
}

func (o *recommendOptions) run(cmd *cobra.Command) error {
	if err := o.parse(cmd); err != nil {
		return err
	}
	command, source := commandLine(cmd), o.Source
	found, err := o.find(cmd)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "--"): // names the flag with invalid input
		return err
	case cmd.Context().Err() != nil:
		return base.Failure(errors.New("interrupted: no recommendation"))
	case err != nil:
		return base.Failure(err)
	}
	found.Command = command
	if o.generate != "" {
		found.Source = "generated: " + o.generate
	} else {
		found.Source = "recording: " + source.Recording
	}
	documents, unfit := found.Manifests()
	page, err := found.Document(false)
	if err != nil {
		return base.Failure(err)
	}
	written := o.report.Write(page.Write)
	if unfit == nil && o.write != "" {
		written = errors.Join(written, o.writeFolder(documents))
	}
	// The result is printed last, since the reader of a pipe may end this process, and in any case.
	if err := errors.Join(written, o.printResult(cmd.OutOrStdout(), found, documents)); err != nil {
		return base.Failure(err)
	}
	if unfit != nil && (o.write != "" || o.report.Path != "" || o.output.Format == base.FormatYAML) {
		return base.WithExitCode(base.ExitCondition, unfit)
	}
	return nil
}

// printResult prints the result in the format of --output. In YAML it is what to apply.
func (o *recommendOptions) printResult(out io.Writer, found *recommend.Result, documents []recommend.Manifest) error {
	d, err := found.Document(o.output.Format == base.FormatTable)
	if err != nil {
		return err
	}
	if o.output.Format != base.FormatYAML {
		return o.output.Print(out, found, func(out io.Writer) { Print(out, &o.output, &d) })
	}
	for _, d := range documents {
		fmt.Fprintf(base.Escaped(out), "---\n%s", d.Text)
	}
	return nil
}

// generatedFolder returns a new folder for a generated recording, and removes such folders of killed processes: they are a day old.
func generatedFolder() (string, error) {
	const pattern = "plimsoll-generated-*"
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), pattern)) // the pattern is valid
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(folder) // unless it is of another user
		}
	}
	return os.MkdirTemp("", pattern)
}

// find finds a configuration, over the recording of a generated cluster if one is to be generated, or of days that begin with a snapshot.
func (o *recommendOptions) find(cmd *cobra.Command) (*recommend.Result, error) {
	if o.generate != "" || o.isSnapshot {
		folder, err := generatedFolder()
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(folder) }()
		file := filepath.Join(folder, "generated.ndjson.gz")
		if err := generate.Record(file, generate.Source{Source: o.Source, Generate: o.generate, Usage: o.usage}, 1); err != nil {
			return nil, err
		}
		o.Source.Recording = file
	}
	found, err := recommend.Find(cmd.Context(), o.Options)
	if err == nil && o.isSnapshot {
		found.FirstLook, found.Saving = true, "A first look: "+found.Saving
		found.Verdict.Sentence = "A first look, with two days of usage generated around one reading: " + found.Verdict.Sentence +
			" Record a day at least before you change anything."
	}
	if err == nil && o.generate == "" && !o.isSnapshot && found.Confirm.To.Sub(found.Fit.From) < 24*time.Hour {
		found.Verdict.Sentence = "Less than a day is recorded: record a day at least before you change anything. " + found.Verdict.Sentence
	}
	if rest, ok := strings.CutPrefix(fmt.Sprint(err), "--recording: "+o.Source.Recording+" "); ok && o.generate != "" {
		err = fmt.Errorf("--generate: the cluster %s: over= or churn= (seconds) and life= make pods arrive for longer", rest)
	}
	return found, err
}

// parse parses and validates the flags.
func (o *recommendOptions) parse(cmd *cobra.Command) (err error) {
	if err := o.checkFiles(); err != nil {
		return err
	}
	o.isSnapshot = recording.IsSnapshot(o.Source.Recording)
	switch {
	case cmd.Flags().Changed("usage") && o.generate == "" && !o.isSnapshot:
		return errors.New("--usage: needs --generate or a snapshot: a recording has the usage of its pods")
	case o.isSnapshot && (o.write != "" || o.output.Format == base.FormatYAML):
		return errors.New("--recording: found a snapshot, whose usage is one reading: what to apply needs a recording of a day at least")
	}
	o.Metrics = replay.DefaultMetrics
	o.Run = compare.WithSaturation(o.saturation, runJobs(cmd.ErrOrStderr()))
	o.Report = func(line string) { fmt.Fprintln(base.Escaped(cmd.ErrOrStderr()), "plimsoll:", line) }
	if err := o.parseChange(); err != nil {
		return err
	}
	if err := o.parseGoals(cmd); err != nil {
		return err
	}
	if err := o.readProfiles(); err != nil {
		return err
	}
	if o.Policy, err = input.SlackPolicy(o.policy, "policy", ""); err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	if o.IsInForce = o.policy != ""; !o.IsInForce {
		o.Policy.Spec.Mirrors.NamespaceSelector = nil
	}
	return o.parseAutoscaler()
}

// checkFiles verifies that the files and folders to write can be created.
func (o *recommendOptions) checkFiles() error {
	if o.write != "" && o.report.Path != "" && strings.HasPrefix(filepath.Clean(o.report.Path)+"/", filepath.Clean(o.write)+"/") {
		return fmt.Errorf("--report: %s is in the new folder of --write: must be elsewhere", o.report.Path)
	}
	if err := o.report.Check(); err != nil || o.write == "" {
		return err
	}
	if err := base.CheckFileName("--write", o.write); err != nil {
		return err
	}
	switch err := os.Mkdir(o.write, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("--write: %s already exists: must be a new folder", o.write)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--write: folder %s does not exist: create it first", filepath.Dir(o.write))
	case err != nil:
		return fmt.Errorf("--write: %w", err)
	}
	return os.Remove(o.write) // created again when the result is known
}

// parseChange parses --change.
func (o *recommendOptions) parseChange() error {
	if len(o.change) == 0 {
		return errors.New("--change: must be one or more of profile, requests, slack")
	}
	for _, lever := range o.change {
		if !slices.Contains(levers, lever) {
			return base.InvalidValue("change", lever, "profile, requests or slack"+format.Suggestion(lever, levers))
		}
	}
	has := func(lever string) bool { return slices.Contains(o.change, lever) }
	o.Change = recommend.Changes{Profile: has("profile"), Requests: has("requests"), Slack: has("slack")}
	return nil
}

// readProfiles reads the profiles, of which the first is in force.
func (o *recommendOptions) readProfiles() error {
	for i, name := range o.profiles {
		if slices.Contains(o.profiles[:i], name) {
			return fmt.Errorf("--profile: found %s twice", name)
		}
	}
	if len(o.profiles) < 2 {
		o.profiles = append(o.profiles, triedProfiles...)
	}
	for _, name := range o.profiles {
		profile, err := engine.ReadConfig(name)
		if err != nil {
			return fmt.Errorf("--profile: %w", err)
		}
		o.Profiles = append(o.Profiles, profile)
	}
	o.Current, o.Source.NoSpare = o.Profiles[0], o.Change.Slack || o.policy != ""
	return nil
}

// parseGoals parses the flags of goals.
func (o *recommendOptions) parseGoals(cmd *cobra.Command) (err error) {
	if o.wait != "" {
		o.Goals.HasWait = true
		if o.Goals.Percent, o.Goals.Wait, err = v1alpha1.ParseWait(o.wait); err != nil {
			return base.InvalidValue("wait", o.wait, err.Error())
		}
	}
	for name, goal := range map[string]struct {
		value *float64
		set   **float64
	}{"overload": {&o.overload, &o.Goals.Overload}, "killed": {&o.killed, &o.Goals.Killed}} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if !(*goal.value >= 0 && *goal.value <= math.MaxInt32) { // or not a number
			return base.InvalidValue(name, *goal.value, "0 or more")
		}
		*goal.set = goal.value
	}
	return nil
}

// parseAutoscaler parses --autoscaler. Without it, nodes are like the most frequent node.
func (o *recommendOptions) parseAutoscaler() error {
	texts := o.autoscaler
	if o.CountsNodes = len(texts) == 0; o.CountsNodes {
		texts = []string{"boot=120"}
	}
	spec, err := scaling.Parse(texts)
	if err != nil {
		return fmt.Errorf("--autoscaler: %w", err)
	}
	if o.Change.Slack && len(spec.Groups) > 1 {
		return errors.New("--autoscaler: found several groups: must be one unless --change is profile,requests")
	}
	spec.Groups[0].AdoptOthers = true
	o.HasIdle = slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "idle=") })
	o.Autoscaler = &spec
	return nil
}

// writeFolder writes what to apply to a new folder.
func (o *recommendOptions) writeFolder(documents []recommend.Manifest) error {
	if err := os.Mkdir(o.write, 0o755); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	for _, d := range documents {
		if err := os.WriteFile(filepath.Join(o.write, d.Name), d.Text, 0o644); err != nil {
			return fmt.Errorf("--write: %w", err)
		}
	}
	return nil
}
