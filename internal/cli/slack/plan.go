// Package slack has the commands that plan slack and show its status.
package slack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// NewCommand returns the command plimsoll slack.
func NewCommand() *cobra.Command {
	return base.NewGroup("slack", "Plan slack, and show its status", newPlanCommand(), newStatusCommand())
}

// planOptions are the flags of plimsoll slack plan.
type planOptions struct {
	objects   input.Objects
	cluster   kube.Access
	policy    string
	rate      string
	namespace string
	output    base.Output
}

func newPlanCommand() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan [-f FILE_OR_DIR... | --recording FILE]",
		Short: "Plan the placeholders for a rate of a cluster's requests",
		Long: `Plan the placeholders that reserve capacity for a rate of the requests in a cluster
and for its biggest pod, as a newly started slack controller would. Nodes, pods and
workloads with placeholders of their own (annotation plimsoll.dev/slack) are read from
the live cluster, which is not changed, or from manifests or a recording.

The policy is a ResourceSlack (--policy), or the default one with --rate. With -o yaml,
the plan is printed as the objects for an autoscaler with CapacityBuffers, for clusters
without the controller: a controller leaves them alone, and does not update them. Where
one runs, apply the policy. The exit code is 0 even if the plan is not feasible: the
reasons are printed, and -o json has the field "feasible".`,
		Example: `  # Plan slack for 20 % of the requests of the current cluster.
  plimsoll slack plan --rate 20%

  # The same, without access to the cluster from this program.
  kubectl get nodes,pods,deployments,statefulsets -A -o yaml | plimsoll slack plan -f - --rate 20%

  # Create the objects of a policy in a cluster without the controller.
  plimsoll slack plan -f cluster/ --policy policy.yaml -o yaml | kubectl apply -f -`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, base.Warnings(cmd.ErrOrStderr())) },
	}
	o.objects.AddFlags(cmd, " of nodes and pods")
	o.objects.AddAtFlag(cmd)
	cmd.Flags().Lookup("at").Usage = "time of the plan, by which schedules apply, such as 2026-11-21T12:00:00Z; with --recording also " +
		"the time at which the cluster is read (default now, or the end of the recording)"
	o.cluster.AddFlags(cmd, "cluster")
	input.AddArguments(cmd)
	input.ExcludeLive(cmd, "filename", "recording")
	flags := cmd.Flags()
	flags.StringVar(&o.policy, "policy", "", "file with a ResourceSlack")
	flags.StringVar(&o.rate, "rate", "", "rate of the requests to reserve, such as 10% or 0.1; replaces that of the policy "+
		"(default "+v1alpha1.DefaultRate+")")
	flags.StringVarP(&o.namespace, "namespace", "n", "plimsoll-system", "namespace of the objects with -o yaml")
	base.CheckFlag(cmd, "namespace", "the name of a namespace", base.IsNamespace)
	o.output.AddFlag(cmd)
	_ = cmd.MarkFlagFilename("policy", "yaml", "yml", "json")
	return cmd
}

// planResult is the result in JSON.
type planResult struct {
	Policy       string          `json:"policy"`
	Base         v1.ResourceList `json:"base"`
	Target       v1.ResourceList `json:"target"`
	Head         []placeholders  `json:"head"`
	Placeholders placeholders    `json:"placeholders"`
	Devices      []placeholders  `json:"devices,omitempty"`
	Mirrors      []mirror        `json:"mirrors,omitempty"`
	Total        v1.ResourceList `json:"total"`
	Feasible     bool            `json:"feasible"`
	Reasons      []string        `json:"reasons"`
	// Schedule is missing if the policy has no schedules.
	Schedule *v1alpha1.ScheduleStatus `json:"schedule,omitempty"`
}

// placeholders is a number of equal placeholders.
type placeholders struct {
	Requests v1.ResourceList `json:"requests"`
	Count    int64           `json:"count"`
}

// mirror is the placeholders of a workload.
type mirror struct {
	Workload string `json:"workload"`
	placeholders
}

func (o *planOptions) run(cmd *cobra.Command, warn func(string)) error {
	out := cmd.OutOrStdout()
	at := o.objects.At
	if o.objects.Recording == "" || recording.IsSnapshot(o.objects.Recording) {
		o.objects.At = ""
	}
	if err := o.objects.ValidateExclusive(); err != nil {
		return err
	}
	if cmd.Flags().Changed("namespace") && o.output.Format != base.FormatYAML {
		return errors.New("--namespace: requires -o yaml: the plan covers the pods of all namespaces")
	}
	policy, err := o.readPolicy()
	if err != nil {
		return err
	}
	state, err := o.read(cmd, policy, warn)
	if err != nil {
		return err
	}
	now, err := input.ParseTime("at", at, state.Now)
	if err != nil {
		return err
	}
	workloads := slack.WorkloadsOf(state.Objects.Workloads)
	for i := range workloads {
		workloads[i].NamespaceLabels = labelsOf(state.Objects.Others, workloads[i].Namespace)
	}
	plan, err := slack.Compute(policy, state.Objects.Nodes, state.Objects.Running, workloads, now)
	if err != nil {
		return err
	}
	if o.output.Format == base.FormatYAML {
		return o.printObjects(out, warn, policy, plan)
	}
	return o.output.Print(out, newPlanResult(plan), func(out io.Writer) {
		if o.rate == "" && o.policy == "" {
			fmt.Fprintf(out, "rate %s, the default: --rate sets another rate\n", policy.Spec.MinRate)
		}
		printPlan(out, &o.output, plan)
		printSchedule(out, policy, plan.Schedule)
	})
}

// read returns the objects of the input or the cluster, or an error if their PriorityClasses exclude the policy.
func (o *planOptions) read(cmd *cobra.Command, policy *v1alpha1.ResourceSlack, warn func(string)) (state *engine.State, err error) {
	if o.objects.Given() {
		state, err = o.objects.Read(cmd.Context(), cmd.InOrStdin(), input.Instant{}, warn)
	} else {
		state, err = input.ReadObjects(cmd, &o.cluster, warn)
	}
	if err == nil {
		err = checkClass(policy, state.Objects.Others)
	}
	return state, err
}

// readPolicy returns the policy of the flags.
func (o *planOptions) readPolicy() (*v1alpha1.ResourceSlack, error) {
	policy, err := input.SlackPolicy(o.policy, "rate", o.rate)
	if _, noFile := errors.AsType[*fs.PathError](err); noFile {
		return nil, fmt.Errorf("--policy: %w: must be a file with a ResourceSlack; --rate sets a rate", err)
	}
	return policy, err
}

// checkClass returns an error if a policy names a PriorityClass of the input whose pods would evict other pods.
func checkClass(policy *v1alpha1.ResourceSlack, objects []runtime.Object) error {
	for _, object := range objects {
		class, ok := object.(*schedulingv1.PriorityClass)
		if ok && class.Name == policy.Spec.PriorityClassName && (class.Value < -10 || class.Value > -1) {
			return fmt.Errorf(
				"spec.priorityClassName: PriorityClass %s has the value %d: must be from -10 to -1: placeholders of a higher value "+
					"evict pods, and autoscalers add no nodes for a lower one",
				class.Name,
				class.Value,
			)
		}
	}
	return nil
}

// labelsOf returns the labels of a namespace in the input, nil if it is not in the input.
func labelsOf(objects []runtime.Object, namespace string) map[string]string {
	for _, object := range objects {
		if n, ok := object.(*v1.Namespace); ok && n.Name == namespace {
			return labels.Merge(n.Labels, labels.Set{v1.LabelMetadataName: n.Name}) // as the API server does
		}
	}
	return nil
}

func newPlanResult(plan slack.Plan) planResult {
	result := planResult{
		Policy: plan.Policy, Base: plan.Base, Target: plan.Target, Total: plan.Total,
		Feasible: plan.Feasible && plan.MirrorsFeasible, Reasons: append(append([]string{}, plan.Reasons...), plan.MirrorReasons...),
		Schedule: plan.Schedule, Head: []placeholders{}, Placeholders: placeholders{Requests: v1.ResourceList{}},
	}
	for _, group := range plan.Groups {
		p := placeholders{group.Requests, group.Count}
		switch {
		case group.Head:
			result.Head = append(result.Head, p)
		case group.Mirror != nil:
			result.Mirrors = append(result.Mirrors, mirror{group.Mirror.String(), p})
		case group.Devices != "":
			result.Devices = append(result.Devices, p)
		default:
			result.Placeholders = placeholders{p.Requests, p.Count + result.Placeholders.Count} // of all domains
		}
	}
	return result
}

// printObjects prints the objects for an autoscaler with CapacityBuffers.
func (o *planOptions) printObjects(out io.Writer, warn func(string), policy *v1alpha1.ResourceSlack, plan slack.Plan) error {
	for _, reason := range slices.Concat(plan.Reasons, plan.MirrorReasons) {
		warn(reason)
	}
	backend := slack.BackendOf(policy)
	if !backend.Virtual {
		return base.InvalidValue("output", o.output.Format,
			"table or json: only the controller creates the objects of backend "+string(backend.Name))
	}
	for i := range plan.Groups {
		plan.Groups[i].Name += "-planned"
	}
	objects, err := backend.Objects(policy, plan, o.namespace)
	if err != nil {
		return err
	}
	var documents []string
	for _, object := range objects {
		object.SetLabels(nil) // a controller deletes objects with its label that no policy plans
		raw, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		documents = append(documents, string(raw))
	}
	_, err = io.WriteString(base.Escaped(out), strings.Join(documents, "---\n"))
	return err
}

// printSchedule prints which schedule applies and when this changes.
func printSchedule(out io.Writer, policy *v1alpha1.ResourceSlack, s *v1alpha1.ScheduleStatus) {
	if s == nil {
		return
	}
	active := "none"
	if s.Active != nil {
		active = policy.Spec.Schedules[*s.Active].String()
	}
	fmt.Fprintf(out, "schedule: %s, %s\n", base.Escape(active), describeSlack(s.MinRate, s.Minimum))
	if s.NextChange != nil {
		fmt.Fprintf(out, "next change: %s, %s\n", s.NextChange.Format(time.RFC3339), describeSlack(s.NextMinRate, s.NextMinimum))
	}
}

func printPlan(out io.Writer, o *base.Output, plan slack.Plan) {
	t := base.NewTable("amount", "count", "CPU", "memory")
	appendRow := func(name string, count any, list v1.ResourceList) {
		t.AddRow(name, count, format.Cores(list.Cpu().MilliValue()), format.Bytes(list.Memory().Value()))
	}
	appendRow("base", "", plan.Base)
	appendRow("target", "", plan.Target)
	for _, group := range plan.Groups {
		name := "placeholders"
		switch {
		case group.Head:
			name = "for the biggest pod"
		case group.Mirror != nil:
			name = "like " + group.Mirror.String()
		case group.Devices != "":
			name = "with " + group.Devices
		case group.NodeSelector != nil:
			name = "placeholders in " + group.NodeSelector[plan.Spread.TopologyKey]
		}
		appendRow(name, group.Count, group.Requests)
	}
	appendRow("total", "", plan.Total)
	fmt.Fprintln(out, base.Escape(plan.Policy))
	t.Print(out, o)
	if !plan.Feasible || !plan.MirrorsFeasible {
		fmt.Fprintln(out, "not feasible:")
	}
	for _, reason := range slices.Concat(plan.Reasons, plan.MirrorReasons) {
		fmt.Fprintln(out, base.Escape(reason))
	}
}
