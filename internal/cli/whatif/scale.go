package whatif

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/autoscale"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// scaleHelp is the help text on autoscalers of both commands.
const scaleHelp = `With --autoscaler, nodes are added and removed. Repeat it for each group of equal
nodes, with shape=CORESxGIB, min, max, boot (seconds), cost (per hour),
label=KEY=VALUE, gpus, gpu-model and name. One of the groups may have interval, idle,
after-add (seconds) and utilisation, which configure the autoscaler. --slack is the
capacity that it reserves for future pods: a rate of the requests, or a file with a
ResourceSlack; 0% is no slack.`

// addScaleFlags adds the flags of autoscalers.
func (o *whatIfOptions) addScaleFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.autoscaler, "autoscaler", nil, "group of nodes that an autoscaler scales, such as shape=16x64,max=100,boot=120,cost=0.80; may be repeated")
	flags.StringSliceVar(&o.slack, "slack", nil, "with --autoscaler: slack to reserve, a rate such as 10% or a file with a ResourceSlack; plimsoll compare accepts several, such as 0%,5%,10%")
	completeWith(cmd, "autoscaler", cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, "shape=", "max=", "boot=", "cost=")
	completeWith(cmd, "slack", cobra.ShellCompDirectiveDefault, "0%", "5%", "10%", "20%")
}

// column is what is compared with others: a profile, with so much slack.
type column struct {
	name, slack string
	profile     profiles.Profile
	autoscaler  *replay.Autoscaler
}

// validateScale returns an error for invalid flags of autoscalers.
func (o *whatIfOptions) validateScale() error {
	if len(o.slack) > 0 && len(o.autoscaler) == 0 {
		return errors.New("--slack: requires --autoscaler")
	}
	for i, text := range o.slack {
		if slices.Contains(o.slack[:i], text) {
			return fmt.Errorf("--slack: found %s twice", text)
		}
	}
	return nil
}

// columns returns what is to be compared: every profile with every slack.
func (o *whatIfOptions) columns(compared []profiles.Profile) ([]column, error) {
	var columns []column
	if len(o.autoscaler) == 0 {
		for _, profile := range compared {
			columns = append(columns, column{name: profile.Name, profile: profile})
		}
		return columns, nil
	}
	spec, err := autoscale.Parse(o.autoscaler)
	if err != nil {
		return nil, fmt.Errorf("--autoscaler: %w", err)
	}
	policies := make([]*v1alpha1.ResourceSlack, len(o.slack))
	for i, text := range o.slack {
		if policies[i], err = slackOf(text); err != nil {
			return nil, err
		}
	}
	for _, profile := range compared {
		if len(o.slack) == 0 {
			columns = append(columns, column{name: profile.Name, profile: profile, autoscaler: &replay.Autoscaler{Spec: spec}})
		}
		for i, text := range o.slack {
			columns = append(columns, column{profile.Name + ", slack " + text, text, profile, &replay.Autoscaler{Spec: spec, Slack: policies[i]}})
		}
	}
	return columns, nil
}

// slackOf returns the policy that a text is about, nil for none.
func slackOf(text string) (*v1alpha1.ResourceSlack, error) {
	rate, err := v1alpha1.ParseRate(text)
	path := ""
	switch {
	case err == nil && rate == 0:
		return nil, nil
	case err != nil:
		path, text = text, ""
	}
	policy, err := input.SlackPolicy(path, text)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, base.InvalidValue("slack", path, "a rate such as 10% or 0.1, at least 0, or a file with a "+v1alpha1.Kind)
	case err != nil:
		return nil, fmt.Errorf("--slack: %w", err)
	}
	return policy, nil
}

// addAutoscaler says in the result what the autoscaler is, and finds out what is
// wrong with it for an input.
func addAutoscaler(r *result.Result, columns []column, nodes []replay.Node) error {
	first := columns[0].autoscaler
	if first == nil {
		return nil
	}
	none := false
	for _, c := range columns {
		if err := replay.CheckAutoscaler(c.autoscaler, nodes); err != nil {
			return fmt.Errorf("--autoscaler: %w", err)
		}
		none = none || c.slack != "" && c.autoscaler.Slack == nil
	}
	r.Settings.Autoscaler = &result.Autoscaler{Groups: first.Texts(), Priced: first.Loop.Priced}
	for _, text := range r.Settings.Autoscaler.Groups {
		r.Assumed = append(r.Assumed, "an autoscaler makes and removes nodes: "+strings.ReplaceAll(text, ",", ", "))
	}
	if unpriced := replay.Unpriced(first.Spec, nodes); unpriced > 0 {
		r.Assumed = append(r.Assumed, fmt.Sprintf("%d nodes of the input cost nothing: they are of no group, and no group's nodes are like them", unpriced))
	}
	if !first.Loop.Priced {
		r.Assumed = append(r.Assumed, "a node costs 1 an hour, as no group says what its nodes cost")
	}
	if none {
		r.Assumed = append(r.Assumed, "slack of 0% is none at all: no room is kept for the biggest pod either")
	}
	return nil
}
