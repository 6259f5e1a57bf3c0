package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// statusOptions are the flags of plimsoll slack status.
type statusOptions struct {
	cluster base.Cluster
	output  base.Output
	watch   base.Watch
}

func newStatusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [POLICY...]",
		Short: "Show the status of slack policies",
		Long: `Show the target of each slack policy, how much slack the cluster has, and why a
policy is not ready. For each CapacityBuffer of a policy, show whether the autoscaler
accepts, limits or refuses it, in its own words, and, while placeholders do not fit, why
it adds no nodes for it (event NotTriggerScaleUp). The exit code is 1 if a policy is not ready.`,
		Example: `  plimsoll slack status

  # Show the status every 10 seconds until interrupted.
  plimsoll slack status --watch

  # Wait until a policy is ready.
  until plimsoll slack status general; do sleep 5; done`,
		RunE: func(cmd *cobra.Command, args []string) error {
			warn := base.Warnings(cmd.ErrOrStderr())
			return o.watch.Run(cmd.Context(), cmd.OutOrStdout(), warn, func(ctx context.Context, out io.Writer) error {
				return o.run(ctx, args, out, warn)
			})
		},
	}
	o.cluster.AddFlags(cmd, "cluster", 30*time.Second)
	cmd.ValidArgsFunction = base.CompleteNames(&o.cluster, v1alpha1.GroupVersion.WithResource("resourceslacks"), nil)
	o.output.AddFlag(cmd)
	o.output.AddNoHeadersFlag(cmd)
	o.watch.AddFlags(cmd, 10*time.Second)
	return cmd
}

// statusResult is the status of one policy in JSON and YAML.
type statusResult struct {
	Policy string `json:"policy"`
	Rate   string `json:"rate"`
	// Minimum is the minimum of the spec. The schedule in the status may have another one.
	Minimum *v1alpha1.Amount             `json:"minimum,omitempty"`
	Ready   bool                         `json:"ready"`
	Status  v1alpha1.ResourceSlackStatus `json:"status"`
	// Buffers have the status that the autoscaler reports, buffers that need attention first.
	Buffers []bufferStatus `json:"buffers,omitempty"`
}

// newStatusResult returns the status of a policy without buffers.
func newStatusResult(policy *v1alpha1.ResourceSlack) statusResult {
	ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	return statusResult{
		Policy: policy.Name, Rate: policy.Spec.MinRate, Minimum: policy.Spec.Minimum, Status: policy.Status,
		Ready: ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == policy.Generation,
	}
}

func (o *statusOptions) run(ctx context.Context, names []string, out io.Writer, warn func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, o.cluster.Timeout)
	defer cancel()
	results, err := o.read(ctx, names, warn)
	if err != nil {
		return err
	}
	o.watch.Begin(out, o.output.Format)
	if err := o.output.Print(out, results, func(out io.Writer) { printStatus(out, &o.output, results) }); err != nil {
		return err
	}
	for _, result := range results {
		if !result.Ready {
			return base.Failure(fmt.Errorf("policy %s is not ready: %s", result.Policy, notReady(result.Status)))
		}
	}
	return nil
}

// errNoCRD is the error of a cluster without the resource of policies.
var errNoCRD = errors.New("the cluster has no ResourceSlacks: install the CRD (kubectl apply -f config/crd)")

// newClient returns a client of policies and buffers.
func newClient(cluster *base.Cluster) (client.Client, error) {
	config, err := cluster.Config()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return c, nil
}

// read returns the status of the named policies, or of all policies if there are no names.
func (o *statusOptions) read(ctx context.Context, names []string, warn func(string)) ([]statusResult, error) {
	c, err := newClient(&o.cluster)
	if err != nil {
		return nil, err
	}
	var list v1alpha1.ResourceSlackList
	if err := c.List(ctx, &list); err != nil {
		if resources.IsNotServed(err) {
			return nil, base.Failure(errNoCRD)
		}
		return nil, base.Failure(fmt.Errorf("listing policies: %w", o.cluster.Explain(err)))
	}
	for i, name := range names {
		key, err := base.Policy.ParseName(name, "")
		if err != nil {
			return nil, err
		}
		if key.Namespace == "" { // policies have none
			names[i] = key.Name
		}
	}
	results := []statusResult{}
	buffers := readBuffers(ctx, c, list.Items, warn)
	for _, policy := range list.Items {
		if len(names) == 0 || slices.Contains(names, policy.Name) {
			result := newStatusResult(&policy)
			result.Buffers = buffers[policy.Name]
			results = append(results, result)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(results, func(r statusResult) bool { return r.Policy == name }) {
			var known []string
			for i := range list.Items {
				known = append(known, list.Items[i].Name)
			}
			return nil, base.Failure(fmt.Errorf("policy %q not found%s", name, format.Suggestion(name, known)))
		}
	}
	if len(results) == 0 {
		return nil, base.Failure(errors.New("the cluster has no policies of kind ResourceSlack"))
	}
	return results, nil
}

// readyMessage returns the reason and message of the condition Ready.
func readyMessage(status v1alpha1.ResourceSlackStatus) string {
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "no controller has observed it (is plimsoll-controller running?)"
	}
	return ready.Reason + ": " + ready.Message
}

// notReady returns why a policy is not ready in a few words. The message is in the output.
func notReady(status v1alpha1.ResourceSlackStatus) string {
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		return "the controller has not observed its last change"
	}
	reason, _, _ := strings.Cut(readyMessage(status), ":")
	return reason
}

func printStatus(out io.Writer, o *base.Output, results []statusResult) {
	t := base.NewTable("policy", "ready", "rate", "amount", "CPU", "memory", "placeholders")
	for _, r := range results {
		s := r.Status
		for i, amount := range []struct {
			name         string
			list         v1.ResourceList
			placeholders any
		}{
			{"base", s.Base, ""},
			{"target", s.Target, ""},
			{"held", s.Total, s.Placeholders},
			{"available", s.Available, fmt.Sprintf("%d fit", s.Placed)},
		} {
			policy := []any{"", "", ""}
			if i == 0 {
				policy = []any{r.Policy, yesOrNo(r.Ready), r.Rate}
			}
			t.AddRow(append(policy, amount.name, format.Cores(amount.list.Cpu().MilliValue()), format.Bytes(amount.list.Memory().Value()),
				amount.placeholders)...)
		}
	}
	t.Print(out, o)
	for _, r := range results {
		if s := r.Status.Schedule; s != nil && s.NextChange != nil {
			text := fmt.Sprintf("%s: %s until %s, then %s", r.Policy, describeSlack(s.MinRate, s.Minimum),
				s.NextChange.UTC().Format(time.RFC3339), describeSlack(s.NextMinRate, s.NextMinimum))
			fmt.Fprintln(out, base.Wrap("", text, base.DefaultWidth))
		} else if r.Minimum != nil {
			fmt.Fprintf(out, "%s: %s\n", r.Policy, describeSlack(r.Rate, r.Minimum))
		}
	}
	printBuffers(out, o, results)
	for _, r := range results {
		printed := map[string]bool{}
		for _, condition := range slices.SortedStableFunc(slices.Values(r.Status.Conditions), readyFirst) {
			fmt.Fprintf(out, "%s %s: %s (%s)\n", r.Policy, condition.Type, strings.ToLower(string(condition.Status)), condition.Reason)
			if !printed[condition.Message] {
				fmt.Fprintln(out, base.Wrap("  ", base.Escape(condition.Message), base.DefaultWidth))
			}
			printed[condition.Message] = true
		}
		if len(r.Status.Conditions) == 0 {
			fmt.Fprintf(out, "%s: %s\n", r.Policy, base.Escape(readyMessage(r.Status)))
		}
	}
}

// describeSlack describes a rate and a minimum, which may be nil.
func describeSlack(rate string, minimum *v1alpha1.Amount) string {
	text := "rate " + rate
	if minimum == nil {
		return text
	}
	var parts []string
	if minimum.CPU != nil {
		parts = append(parts, format.Cores(minimum.CPU.MilliValue())+" CPU")
	}
	if minimum.Memory != nil {
		parts = append(parts, format.Bytes(minimum.Memory.Value())+" memory")
	}
	if minimum.Placeholders != nil {
		parts = append(parts, format.Of(*minimum.Placeholders, "placeholder"))
	}
	return text + ", minimum " + strings.Join(parts, " and ")
}

// readyFirst orders conditions: Ready, which states the first cause for which slack is not available, is before others.
func readyFirst(a, b metav1.Condition) int {
	rank := map[string]int{v1alpha1.ConditionReady: -1}
	return cmp.Compare(rank[a.Type], rank[b.Type])
}
