package whatif

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// scaleHelp is the help text on autoscalers of plimsoll compare.
const scaleHelp = `With --autoscaler, nodes are added and removed. Repeat it for each group of equal
nodes, with shape=CORESxGIB, min, max, boot (seconds), cost (per hour),
label=KEY=VALUE, gpus, gpu-model and name. One of the groups may have interval, idle,
after-add (seconds) and utilization, which configure the autoscaler. --slack is the
capacity that it reserves for future pods: a rate of the requests such as 10% or 0.1,
or a file with a ResourceSlack; 0% is no slack.`

// addScaleFlags adds the flags of autoscalers.
func (o *whatIfOptions) addScaleFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.autoscaler, "autoscaler", nil, "group of nodes that an autoscaler scales, such as "+
		"shape=16x64,max=100,boot=120,cost=0.80; may be repeated")
	flags.StringSliceVar(&o.slack, "slack", nil, "with --autoscaler: slack to reserve, a rate such as 10% or a file with a "+
		"ResourceSlack; plimsoll compare accepts several, such as 0%,5%,10%")
	completeWith(cmd, "autoscaler", cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, "shape=", "max=", "boot=", "cost=")
	completeWith(cmd, "slack", cobra.ShellCompDirectiveDefault, "0%", "5%", "10%", "20%")
}

// parseScale parses the flags of autoscalers.
func (o *whatIfOptions) parseScale() error {
	switch {
	case len(o.slack) > 0 && len(o.autoscaler) == 0:
		return errors.New("--slack: requires --autoscaler")
	case len(o.autoscaler) == 0:
		return nil
	}
	spec, err := scaling.Parse(o.autoscaler)
	if err != nil {
		return fmt.Errorf("--autoscaler: %w", err)
	}
	o.Autoscaler = &spec
	for i, text := range o.slack {
		if slices.Contains(o.slack[:i], text) {
			return fmt.Errorf("--slack: found %s twice", text)
		}
		policy, err := slackPolicy(text)
		if err != nil {
			return err
		}
		o.Slack, o.Source.NoSpare = append(o.Slack, compare.Slack{Text: text, Policy: policy}), true
	}
	return nil
}

// slackPolicy returns the policy of a rate or file, nil for a rate of 0.
func slackPolicy(text string) (*v1alpha1.ResourceSlack, error) {
	rate, err := v1alpha1.ParseRate(text)
	path := ""
	switch {
	case err == nil && rate == 0:
		return nil, nil
	case err != nil:
		path, text = text, ""
	}
	policy, err := input.SlackPolicy(path, "slack", text)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, base.InvalidValue("slack", path, v1alpha1.RateForm+", or a file with a "+v1alpha1.Kind)
	case err != nil && path != "":
		return nil, fmt.Errorf("--slack: %w", err)
	}
	return policy, err
}
