package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

func newSlackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slack",
		Short: "How much room is kept for the next pods?",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSlackPlanCommand(), newSlackStatusCommand())
	return cmd
}

// slackPlanOptions are the flags of plimsoll slack plan.
type slackPlanOptions struct {
	input

	policy    string
	rate      string
	namespace string
	output    output
}

func newSlackPlanCommand() *cobra.Command {
	var o slackPlanOptions
	cmd := &cobra.Command{
		Use:   "plan (-f FILE_OR_DIR... | --snapshot FILE)",
		Short: "Plan the placeholders that keep a rate of a cluster's load to spare",
		Long: `Plan the placeholders that keep a rate of a cluster's load to spare, and room for
its biggest pod, as the slack controller would if it began now. Nodes, pods and the
workloads that want placeholders of their own (annotation plimsoll.dev/slack) come
from manifests or a snapshot; nothing is changed.

The plan is that of a policy (a ResourceSlack, --policy) or of the default one with
--rate. With -o yaml it is printed as the objects that an autoscaler with
CapacityBuffers wants. The exit code is 0 also where the plan is not feasible; the
reasons say why, and -o json has "feasible".`,
		Example: `  # What would 10 % cost?
  kubectl get nodes,pods,deployments,statefulsets -A -o yaml | plimsoll slack plan -f - --rate 10%

  # The objects of a policy.
  plimsoll slack plan -f cluster/ --policy policy.yaml -o yaml | kubectl apply -f -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.add(cmd, " of nodes and pods")
	flags := cmd.Flags()
	flags.StringVar(&o.policy, "policy", "", "file with a ResourceSlack")
	flags.StringVar(&o.rate, "rate", "", "the rate to keep to spare, such as 10% or 0.1; overrides the policy's (default "+v1alpha1.DefaultRate+")")
	flags.StringVar(&o.namespace, "namespace", "plimsoll-system", "namespace of the objects of -o yaml")
	o.output.add(cmd)
	_ = cmd.MarkFlagFilename("policy", "yaml", "yml", "json")
	return cmd
}

// slackPlanResult is the answer in JSON.
type slackPlanResult struct {
	Policy       string              `json:"policy"`
	Base         v1.ResourceList     `json:"base"`
	Target       v1.ResourceList     `json:"target"`
	Head         []slackPlaceholders `json:"head"`
	Placeholders slackPlaceholders   `json:"placeholders"`
	Mirrors      []slackMirror       `json:"mirrors,omitempty"`
	Total        v1.ResourceList     `json:"total"`
	Feasible     bool                `json:"feasible"`
	Reasons      []string            `json:"reasons"`
}

// slackPlaceholders is a number of equal placeholders.
type slackPlaceholders struct {
	Requests v1.ResourceList `json:"requests"`
	Count    int64           `json:"count"`
}

// slackMirror is what is held for a workload.
type slackMirror struct {
	Workload string `json:"workload"`
	slackPlaceholders
}

func (o *slackPlanOptions) run(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if err := o.validate("nodes and pods"); err != nil {
		return err
	}
	policy, err := o.readPolicy()
	if err != nil {
		return err
	}
	is, err := o.read(ctx, in, instant{}, warnings(errs))
	if err != nil {
		return err
	}
	var workloads []slack.Workload
	for _, object := range is.objects.Workloads {
		if w, ok := slack.WorkloadOf(object); ok {
			workloads = append(workloads, w)
		}
	}
	plan, err := slack.Compute(policy, is.objects.Nodes, is.objects.Running, workloads, is.now)
	if err != nil {
		return err
	}
	if o.output.form == asYAML {
		return o.printObjects(out, errs, policy, plan)
	}
	return o.output.print(out, resultOf(plan), func(out io.Writer) { printPlan(out, plan) })
}

// readPolicy returns the policy that the flags name.
func (o *slackPlanOptions) readPolicy() (*v1alpha1.ResourceSlack, error) {
	policy := &v1alpha1.ResourceSlack{}
	policy.Name, policy.Spec.MinRate = "default", v1alpha1.DefaultRate
	where := "--rate"
	if o.policy != "" {
		where = o.policy
		raw, err := os.ReadFile(o.policy)
		if err != nil {
			return nil, err
		}
		*policy = v1alpha1.ResourceSlack{}
		if err := decodeStrict(raw, policy); err != nil {
			return nil, fmt.Errorf("%s: %w", o.policy, err)
		}
		if policy.Kind != v1alpha1.Kind || policy.APIVersion != v1alpha1.GroupVersion.String() {
			return nil, fmt.Errorf("%s: found %s of %s, want a %s of %s", o.policy, orNone(policy.Kind), orNone(policy.APIVersion), v1alpha1.Kind, v1alpha1.GroupVersion)
		}
		if policy.Name == "" {
			return nil, fmt.Errorf("%s: metadata.name: missing, want the policy's name", o.policy)
		}
	}
	if o.rate != "" {
		policy.Spec.MinRate = o.rate
		if _, err := v1alpha1.ParseRate(o.rate); err != nil {
			return nil, fmt.Errorf("--rate: %w", err)
		}
	}
	policy.Spec.Default()
	if err := policy.Spec.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return policy, nil
}

// decodeStrict reads one object, and returns what it has no field for.
func decodeStrict(raw []byte, into any) error {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	unknown, err := kubejson.UnmarshalStrict(asJSON, into)
	return errors.Join(append(unknown, err)...)
}

func orNone(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func resultOf(plan slack.Plan) slackPlanResult {
	result := slackPlanResult{
		Policy: plan.Policy, Base: plan.Base, Target: plan.Target, Total: plan.Total,
		Feasible: plan.Feasible, Reasons: append([]string{}, plan.Reasons...),
		Head: []slackPlaceholders{}, Placeholders: slackPlaceholders{Requests: v1.ResourceList{}},
	}
	for _, group := range plan.Groups {
		placeholder := slackPlaceholders{group.Requests, group.Count}
		switch {
		case group.Head:
			result.Head = append(result.Head, placeholder)
		case group.Mirror != nil:
			result.Mirrors = append(result.Mirrors, slackMirror{group.Mirror.String(), placeholder})
		default:
			result.Placeholders = placeholder
		}
	}
	return result
}

// printObjects prints what an autoscaler with buffers wants.
func (o *slackPlanOptions) printObjects(out, warnings io.Writer, policy *v1alpha1.ResourceSlack, plan slack.Plan) error {
	for _, reason := range plan.Reasons {
		fmt.Fprintln(warnings, "plimsoll: warning:", reason)
	}
	if policy.Spec.Backend != v1alpha1.BackendCapacityBuffer {
		return fmt.Errorf("--output: the objects of backend %s are made by the controller only, want table or json", policy.Spec.Backend)
	}
	templates, buffers := slack.Objects(policy, plan, o.namespace)
	var documents []string
	add := func(object any) error {
		raw, err := yaml.Marshal(object)
		documents = append(documents, string(raw))
		return err
	}
	for i := range templates {
		if err := add(templates[i]); err != nil {
			return err
		}
		if err := add(buffers[i].Object); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, strings.Join(documents, "---\n"))
	return err
}

func printPlan(out io.Writer, plan slack.Plan) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{plan.Policy, "count", "CPU", "memory"})
	row := func(name string, count any, list v1.ResourceList) {
		t.AppendRow(table.Row{name, count, list.Cpu().String(), rounded(list)})
	}
	row("base", "", plan.Base)
	row("target", "", plan.Target)
	t.AppendSeparator()
	for _, group := range plan.Groups {
		name := "placeholders"
		switch {
		case group.Head:
			name = "for the biggest pod"
		case group.Mirror != nil:
			name = "like " + group.Mirror.String()
		}
		row(name, group.Count, group.Requests)
	}
	t.AppendSeparator()
	row("total", "", plan.Total)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight}})
	t.Render()
	if !plan.Feasible {
		fmt.Fprintln(out, "not feasible:")
	}
	for _, reason := range plan.Reasons {
		fmt.Fprintln(out, reason)
	}
}

// rounded writes memory in whole MiB, rounded up.
func rounded(list v1.ResourceList) string {
	return fmt.Sprintf("%dMi", (list.Memory().Value()+1<<20-1)>>20)
}
