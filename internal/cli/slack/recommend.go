package slack

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// recommendOptions are the flags of plimsoll slack recommend.
type recommendOptions struct {
	source     recording.Source
	autoscaler string
	wait       string
	policy     string
	zone       string
	parts      int
	tail       time.Duration
	output     base.Output
	report     base.NewFile
}

func newRecommendCommand() *cobra.Command {
	o := recommendOptions{source: recording.Source{Pack: 0}, report: base.NewFile{Flag: "--report", Mode: 0o644}}
	cmd := &cobra.Command{
		Use:   "recommend (--recording FILE | --generate SPEC) --autoscaler SPEC --wait p99=5s",
		Short: "Recommend the cheapest policy that keeps waits short",
		Long: `Find the cheapest slack policy with which a percentage of the pods has a node within a
time: a rate, a minimum, a schedule of minimums by the hour of working days and weekends,
or mirrors of Deployments, ReplicaSets and StatefulSets, alone or beside a minimum. The
pods are read from a recording or a generated cluster, as in plimsoll compare.
With --policy, only the nodes and pods of its pool count.

About 60 policies are simulated with a fast model: a pod takes the first node with enough
CPU, memory and pod slots, and an autoscaler adds and removes nodes of one type. Check
the result with plimsoll compare, which runs the code of kube-scheduler, but has no
mirrors in recordings.

The output is the frontier: the policies for which no cheaper one has an equal or shorter
wait. The range of the wait is over parts of the time. With -o yaml, the recommended
policy is printed. Commands in its comments request the placeholders of mirrors.`,
		Example: `  plimsoll slack recommend --recording week.plrec --wait p99=5s \
    --autoscaler shape=16x64,boot=120,cost=0.80

  # Write the policy to a file, with schedules in a time zone.
  plimsoll slack recommend --recording week.plrec --wait p95=10s --time-zone Europe/Berlin \
    --autoscaler shape=16x64,boot=120,cost=0.80 -o yaml > policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *recommendOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	input.AddRecordingFlag(cmd, &o.source.Recording)
	flags.StringVar(&o.source.Generate, "generate", "", "cluster to generate, such as nodes=50,pods=1500,churn=86400,life=7200")
	flags.StringVar(&o.autoscaler, "autoscaler", "", "nodes that an autoscaler adds, such as shape=16x64,max=100,boot=120,cost=0.80")
	flags.StringVar(&o.wait, "wait", "p99=5s", "percentage of pods and the time within which they must have a node")
	flags.StringVar(&o.policy, "policy", "", "file with a ResourceSlack: its rate, minimum, schedules and mirrors are replaced")
	flags.StringVar(&o.zone, "time-zone", "UTC", "IANA time zone of schedules, such as Europe/Berlin")
	flags.IntVar(&o.parts, "parts", 5, "number of parts of the time over which the range of the wait is computed")
	flags.DurationVar(&o.tail, "tail", time.Hour, "simulated time after the arrival of the last pod of a generated cluster")
	o.output.AddFlag(cmd)
	flags.StringVar(&o.report.Path, "report", "", "also write the frontier as a self-contained HTML page to this file")
	flags.BoolVar(&o.report.Force, "force", false, "replace an existing file")
	base.Rare(cmd, "parts", "tail")
	_ = cmd.MarkFlagFilename("policy", "yaml", "yml", "json")
	cmd.MarkFlagsMutuallyExclusive("recording", "generate")
	cmd.MarkFlagsOneRequired("recording", "generate")
	_ = cmd.MarkFlagRequired("autoscaler")
}

// goal returns the goal of the flags.
func (o *recommendOptions) goal() (goal slack.Goal, err error) {
	if goal.Percent, goal.Wait, err = v1alpha1.ParseWait(o.wait); err != nil {
		return goal, base.InvalidValue("wait", o.wait, err.Error())
	}
	if goal.Zone, err = time.LoadLocation(o.zone); err != nil || o.zone == time.Local.String() {
		return goal, base.InvalidValue("time-zone", o.zone, "the name of an IANA time zone such as Europe/Berlin")
	}
	if goal.Parts = o.parts; o.parts < 1 || o.parts > 1000 {
		return goal, base.InvalidValue("parts", o.parts, "between 1 and 1000")
	}
	goal.Policy, err = input.SlackPolicy(o.policy, "policy", "")
	if err == nil && o.policy == "" {
		goal.Policy.Spec.Mirrors.NamespaceSelector = nil
	}
	return goal, err
}

func (o *recommendOptions) run(cmd *cobra.Command) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	if o.report.Path != "" {
		if err := o.report.Check(); err != nil {
			return err
		}
	}
	goal, err := o.goal()
	if err != nil {
		return err
	}
	spec, err := scaling.Parse([]string{o.autoscaler})
	if err != nil {
		return fmt.Errorf("--autoscaler: %w", err)
	}
	in, err := o.source.Input(1, recording.Limits{})
	if err != nil {
		return err
	}
	history, outside, err := o.history(&in, goal.Policy)
	if err != nil {
		return base.Failure(err)
	}
	node, err := spec.NodeType(&in)
	if err != nil {
		return fmt.Errorf("--autoscaler: %w", err)
	}
	found, err := slack.Recommend(cmd.Context(), history, node, goal)
	if err != nil {
		return base.Failure(err)
	}
	warn := base.Warnings(cmd.ErrOrStderr())
	if outside > 0 {
		warn(format.PartAre(outside, outside+len(history.Pods), "pod") + " left out: outside of the pool of the policy")
	}
	return o.print(cmd.OutOrStdout(), warn, &goal, found, &recommendResult{Source: in.Name, Outside: outside})
}

// history returns the history of the pods in the pool of a policy, and the number of other pods. It removes other nodes from the
// input.
func (o *recommendOptions) history(in *recording.Input, policy *v1alpha1.ResourceSlack) (*slack.History, int, error) {
	pool := policy.Spec.Pool
	in.Nodes = slices.DeleteFunc(in.Nodes, func(n recording.Node) bool { return !slack.InPool(n.Object, pool) })
	history, outside := scaling.HistoryOf(in, int64(o.tail/time.Second))
	if len(history.Pods) == 0 && outside > 0 {
		return nil, 0, fmt.Errorf("%s: found no pod in the pool of policy %s (nodeSelector: %s; tolerations: %d), %s outside of it",
			in.Name, policy.Name, labels.FormatLabels(pool.NodeSelector), len(pool.Tolerations), format.Of(outside, "pod"))
	}
	if history.Seconds < int64(o.parts)*60 {
		return nil, 0, fmt.Errorf("%s has %s: must have at least a minute for each of %d parts (--parts)", in.Name,
			time.Duration(history.Seconds)*time.Second, o.parts)
	}
	return history, outside, nil
}

// recommendResult is the result in JSON.
type recommendResult struct {
	Wait        string                  `json:"wait"`
	Summary     string                  `json:"summary"`
	Reached     bool                    `json:"reached"`
	Recommended *v1alpha1.ResourceSlack `json:"recommended,omitempty"`
	// Annotate are the commands that request the mirrors of the recommended policy.
	Annotate []string `json:"annotateCommands,omitempty"`
	// Frontier has the policies for which no cheaper one has an equal or shorter wait, by cost.
	Frontier  []candidateResult `json:"frontier"`
	Simulated int               `json:"simulated"`
	Pods      int64             `json:"pods"`
	TooLarge  int               `json:"podsTooLarge"`
	Outside   int               `json:"podsOutsidePool"`
	Source    string            `json:"source"`
	// Autoscaler is the text of --autoscaler for the page.
	Autoscaler string `json:"-"`
}

// candidateResult is a policy and its outcome in JSON.
type candidateResult struct {
	Name string `json:"name"`
	// Mark is set in a page if the policy is the recommended policy or the cheapest rate.
	Mark string `json:"-"`
	// WaitSeconds is the percentile of the wait, and WaitRange its lowest and highest value over the parts.
	WaitSeconds float64    `json:"waitSeconds"`
	WaitRange   [2]float64 `json:"waitSecondsRange"`
	Longer      int64      `json:"podsThatWaitLonger"`
	Cost        float64    `json:"cost"`
	// CostRange is the lowest and highest cost over the parts, multiplied by their number.
	CostRange [2]float64 `json:"costRange"`
	SlackCost float64    `json:"slackCost"`
}

// newCandidateResult returns a candidate in JSON.
func newCandidateResult(c *slack.Candidate, goal *slack.Goal) candidateResult {
	r := candidateResult{
		Name: c.Name, WaitSeconds: c.Waits.Percentile(goal.Percent).Seconds(), Longer: c.Waits.Longer(goal.Wait), Cost: c.Cost,
		SlackCost: c.SlackCost, WaitRange: [2]float64{math.Inf(1), 0}, CostRange: [2]float64{math.Inf(1), 0},
	}
	for _, part := range c.Parts {
		wait, cost := part.Waits.Percentile(goal.Percent).Seconds(), part.Cost*float64(len(c.Parts))
		r.WaitRange = [2]float64{min(r.WaitRange[0], wait), max(r.WaitRange[1], wait)}
		r.CostRange = [2]float64{min(r.CostRange[0], cost), max(r.CostRange[1], cost)}
	}
	return r
}

func (o *recommendOptions) print(
	out io.Writer, warn func(string), goal *slack.Goal, found *slack.Recommendation, r *recommendResult,
) error {
	r.Wait, r.Autoscaler, r.Reached, r.Simulated = o.wait, o.autoscaler, found.Best != nil, found.Simulated
	r.Pods, r.TooLarge, r.Frontier = found.None.Waits.Pods(), found.None.TooLarge, []candidateResult{}
	if r.Pods == 0 {
		return base.Failure(errors.New(r.Source + ": no pod arrives: a recommendation needs pods that wait for nodes"))
	}
	if found.Best != nil {
		r.Recommended = found.Best.Policy
		for _, w := range found.Best.Mirrors {
			r.Annotate = append(r.Annotate, fmt.Sprintf("kubectl annotate --overwrite %s %s -n %s %s=%s",
				strings.ToLower(w.Kind), w.Name, w.Namespace, v1alpha1.AnnotationSlack, w.Slack))
		}
	}
	for i := range found.Frontier {
		r.Frontier = append(r.Frontier, newCandidateResult(&found.Frontier[i], goal))
	}
	r.Summary = found.Summary(goal)
	if r.TooLarge > 0 {
		warn(format.PartAre(int64(r.TooLarge), r.Pods+int64(r.TooLarge), "pod") + " left out: larger than a node of the autoscaler")
	}
	if o.report.Path != "" {
		if err := o.report.Write(func(out io.Writer) error { return writeFrontier(out, r, goal, found) }); err != nil {
			return base.Failure(err)
		}
	}
	if o.output.Format != base.FormatYAML {
		err := o.output.Print(out, r, func(out io.Writer) { printFrontier(out, &o.output, goal, r) })
		if err != nil || r.Recommended == nil || o.output.Format == base.FormatJSON {
			return err
		}
		fmt.Fprintln(out)
	} else if r.Recommended == nil {
		return base.Failure(errors.New(r.Summary))
	}
	return printPolicy(out, r.Recommended, r.Annotate)
}

// printFrontier prints the frontier and the summary.
func printFrontier(out io.Writer, o *base.Output, goal *slack.Goal, r *recommendResult) {
	name := fmt.Sprintf("wait p%v", goal.Percent)
	t := base.NewTable("policy", "cost", name, "in parts", "longer")
	for i := range r.Frontier {
		c := &r.Frontier[i]
		parts := seconds(c.WaitRange[0]) + "-" + seconds(c.WaitRange[1])
		t.AddRow(format.Shorten(c.Name, 34), format.Plain(c.Cost), seconds(c.WaitSeconds), parts, c.Longer)
	}
	t.Print(out, o)
	legend := fmt.Sprintf("%d %s simulated over %s. Costs are of all nodes over the whole time, in the unit of cost= in --autoscaler; "+
		"IN PARTS is the lowest and highest wait over %d parts, LONGER the number of pods that wait longer than %s.",
		r.Simulated, format.Form(r.Simulated, "policy", "policies"), format.Of(r.Pods, "pod"), goal.Parts, goal.Wait)
	fmt.Fprintln(out, base.Wrap("", legend, base.DefaultWidth))
	fmt.Fprintln(out, base.Wrap("", base.Escape(r.Summary), base.DefaultWidth))
}

// seconds formats a number of seconds, such as 5s.
func seconds(n float64) string { return strconv.FormatInt(int64(n), 10) + "s" }

// printPolicy prints a policy without its status and without fields that have their default, and the commands that request its
// mirrors as comments.
func printPolicy(out io.Writer, policy *v1alpha1.ResourceSlack, annotate []string) error {
	var defaults v1alpha1.ResourceSlackSpec
	defaults.Default()
	unset, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&defaults)
	if err != nil {
		return err
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&policy.Spec)
	if err != nil {
		return err
	}
	maps.DeleteFunc(spec, func(field string, value any) bool { return reflect.DeepEqual(value, unset[field]) })
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind, "spec": spec,
		"metadata": map[string]any{"name": cmp.Or(policy.Name, "default")},
	})
	if err != nil {
		return err
	}
	if len(annotate) > 0 {
		raw = fmt.Appendf(raw, "# Request the placeholders of the mirrors:\n#   %s\n", strings.Join(annotate, "\n#   "))
	}
	_, err = base.Escaped(out).Write(raw)
	return err
}
