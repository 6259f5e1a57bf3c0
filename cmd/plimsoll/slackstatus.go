package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// slackStatusOptions are the flags of plimsoll slack status.
type slackStatusOptions struct {
	kubeconfig string
	output     output
	timeout    time.Duration
}

func newSlackStatusCommand() *cobra.Command {
	var o slackStatusOptions
	cmd := &cobra.Command{
		Use:   "status [POLICY...]",
		Short: "Do I have my slack, and if not, why?",
		Long: `Show what the slack policies of a cluster want, what there is of it, and what stands
in the way. The exit code is 1 if a policy is not ready.`,
		Example: `  plimsoll slack status

  # Wait in a pipeline until the slack is there.
  until plimsoll slack status general; do sleep 5; done`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "access to the cluster (default the pod's own, $KUBECONFIG or ~/.kube/config)")
	o.output.add(cmd)
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the API server")
	_ = cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

// slackStatusResult is the answer about one policy in JSON.
type slackStatusResult struct {
	Policy string                       `json:"policy"`
	Rate   string                       `json:"rate"`
	Ready  bool                         `json:"ready"`
	Status v1alpha1.ResourceSlackStatus `json:"status"`
}

func (o *slackStatusOptions) run(ctx context.Context, names []string, out io.Writer) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	results, err := o.read(ctx, names)
	if err != nil {
		return err
	}
	if err := o.output.print(out, results, func(out io.Writer) { printSlackStatus(out, results) }); err != nil {
		return err
	}
	for _, result := range results {
		if !result.Ready {
			return &failure{fmt.Errorf("policy %s is not ready: %s", result.Policy, because(result.Status))}
		}
	}
	return nil
}

// read returns what the cluster says of the policies, of all if none are named.
func (o *slackStatusOptions) read(ctx context.Context, names []string) ([]slackStatusResult, error) {
	config, err := kube.Config(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	var list v1alpha1.ResourceSlackList
	if err := c.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, &failure{errors.New("the cluster has no ResourceSlacks: install the CRD (kubectl apply -f config/crd)")}
		}
		return nil, &failure{fmt.Errorf("listing policies: %w", err)}
	}
	results := []slackStatusResult{}
	for _, policy := range list.Items {
		if len(names) == 0 || slices.Contains(names, policy.Name) {
			ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
			results = append(results, slackStatusResult{
				Policy: policy.Name, Rate: policy.Spec.MinRate, Status: policy.Status,
				Ready: ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == policy.Generation,
			})
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(results, func(r slackStatusResult) bool { return r.Policy == name }) {
			return nil, &failure{fmt.Errorf("there is no policy %q", name)}
		}
	}
	if len(results) == 0 {
		return nil, &failure{errors.New("the cluster has no policies of kind ResourceSlack")}
	}
	return results, nil
}

// because says why a policy is not ready.
func because(status v1alpha1.ResourceSlackStatus) string {
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "no controller has looked at it (is plimsoll-controller running?)"
	}
	return ready.Reason + ": " + ready.Message
}

func printSlackStatus(out io.Writer, results []slackStatusResult) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"policy", "rate", "", "CPU", "memory", "placeholders", "ready"})
	for _, r := range results {
		t.AppendSeparator()
		s := r.Status
		t.AppendRow(table.Row{r.Policy, r.Rate, "base", s.Base.Cpu(), rounded(s.Base), "", yesNo(r.Ready)})
		t.AppendRow(table.Row{"", "", "target", s.Target.Cpu(), rounded(s.Target), "", ""})
		t.AppendRow(table.Row{"", "", "held", s.Total.Cpu(), rounded(s.Total), s.Placeholders, ""})
		t.AppendRow(table.Row{"", "", "to spare", s.Available.Cpu(), rounded(s.Available), fmt.Sprintf("room for %d", s.Placed), ""})
	}
	right := func(columns ...int) (configs []table.ColumnConfig) {
		for _, column := range columns {
			configs = append(configs, table.ColumnConfig{Number: column, Align: text.AlignRight})
		}
		return configs
	}
	t.SetColumnConfigs(right(2, 4, 5, 6))
	t.Render()
	for _, r := range results {
		for _, condition := range r.Status.Conditions {
			fmt.Fprintf(out, "%s %s: %s (%s)\n", r.Policy, condition.Type, strings.ToLower(string(condition.Status)), condition.Reason)
			fmt.Fprintf(out, "  %s\n", condition.Message)
		}
		if len(r.Status.Conditions) == 0 {
			fmt.Fprintf(out, "%s: %s\n", r.Policy, because(r.Status))
		}
	}
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
