// Package score has the commands that show how a scheduler scores nodes for a pod: score and
// explain.
package score

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
)

// options are the flags of both commands.
type options struct {
	objects input.Objects
	instant input.Instant
	live    input.LiveCluster
	output  base.Output
}

// addFlags adds the flags except --output.
func (o *options) addFlags(cmd *cobra.Command) {
	o.objects.AddFlags(cmd, " of nodes and pods")
	o.objects.AddAtFlag(cmd)
	o.live.LoadSource.AddShort(cmd)
	o.live.Scheduler.AddFlags(cmd, "file with a KubeSchedulerConfiguration (v1, v1beta3 or v1beta2)",
		"profile to evaluate with (default the one in the pod's spec.schedulerName, or the only one)")
	o.live.Scheduler.AddProfileFlag(cmd)
	o.instant.AddFlags(cmd)
	base.Rare(cmd, "strict", "now", "load", "scheduler-name")
}

// validate returns an error for flags that are invalid or exclude each other. Without an input, the live cluster is read.
func (o *options) validate() error {
	if !o.objects.Given() && (o.instant.Load != "" || o.instant.Now != "") {
		return errors.New("--load, --now: require --filename or --recording")
	}
	return o.objects.ValidateExclusive()
}

// NewScoreCommand returns the command plimsoll score.
func NewScoreCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "score [-f FILE_OR_DIR... | --recording FILE]",
		Short: "Score all nodes for each pending pod",
		Long: `Score all nodes for each pending pod with the code of kube-scheduler.

Nodes and pods are read from the live cluster, which is not changed, or from manifests,
or a recording. Pods with spec.nodeName run on that node; all others are
pending and are scored in the order of the input. No pod is bound: each pod is scored
as if it were the only pending one. If several nodes have the highest total,
kube-scheduler selects one of them at random, and this command the first one.

A pod is scored with the profile that its spec.schedulerName names in --config, or with
a built-in --profile: ` + strings.Join(engine.BuiltInProfiles, ", ") + `.
By default, the default profile of kube-scheduler is used, with all plugins of Plimsoll
at weight 1.`,
		Example: `  # Score the nodes of the current cluster with the profile in scheduler.yaml.
  plimsoll score --config scheduler.yaml

  # The same, without access to the cluster from this program.
  kubectl get nodes,pods -A -o yaml | plimsoll score -f - --config scheduler.yaml

  # Include the load of the nodes.
  plimsoll score -f cluster/ --load load.json --now 2026-11-21T12:00:00Z -o json

  # Use a snapshot, which includes the load.
  plimsoll score --recording s.ndjson.gz --config scheduler.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	input.AddArguments(cmd)
	input.ExcludeLive(cmd, "filename", "recording")
	o.output.AddFlag(cmd)
	return cmd
}

// scoreResult is the result in JSON and YAML.
type scoreResult struct {
	Pods []engine.PodScores `json:"pods"`
}

func (o *options) run(cmd *cobra.Command) error {
	warn := base.Warnings(cmd.ErrOrStderr())
	if err := o.validate(); err != nil {
		return err
	}
	var state *engine.State
	var err error
	if o.objects.Given() {
		state, err = o.objects.Read(cmd.Context(), cmd.InOrStdin(), o.instant, warn)
	} else {
		state, err = o.live.ReadState(cmd, warn, nil)
	}
	if err != nil {
		return err
	}
	if o.objects.Given() && len(state.Objects.Running)+len(state.Objects.Pending) == 0 {
		return errors.New("found no pods in the input: score takes Pods; plimsoll placement fit says how many replicas of a workload fit")
	}
	scheduler, err := o.live.Scheduler.ReadWithPlugins(warn)
	if err != nil {
		return err
	}
	warnIncomplete(state, &scheduler, warn)
	o.warnUnknown(state, &scheduler, warn)
	result, err := score(cmd.Context(), *state, scheduler)
	if err != nil {
		return err
	}
	for i, pod := range state.Objects.Pending {
		for _, limitation := range engine.Limitations(pod, result.Pods[i].Selected, state.Objects.Running) {
			warn(limitation)
		}
	}
	return o.output.Print(cmd.OutOrStdout(), result, func(out io.Writer) {
		switch {
		case len(result.Pods) > 0:
		case len(state.Objects.Running) == 0:
			warn("found no pods in the cluster")
		default:
			warn("no pending pods in the input: all pods have spec.nodeName; plimsoll explain pod NAME explains one of them")
		}
		for _, pod := range result.Pods {
			printScores(out, &o.output, pod)
		}
	})
}

// warnUnknown warns about schedulers of pods whose profiles are unknown, and about load that a selected profile reads and the input lacks.
func (o *options) warnUnknown(state *engine.State, scheduler *engine.Scheduler, warn func(string)) {
	warned := map[string]bool{"": true}
	for _, pod := range state.Objects.Pending {
		profile, err := scheduler.ProfileOf(pod)
		if err != nil {
			return // the error of score
		}
		if profile.Requested == v1.DefaultSchedulerName {
			continue // the pod may name none: a configuration can be tried with it
		}
		if text := scheduler.Warning(profile); !warned[text] {
			warned[text] = true
			warn(text)
		}
	}
	for _, profile := range scheduler.Config.Profiles {
		enabled := slices.Concat(profile.Plugins.MultiPoint.Enabled, profile.Plugins.Score.Enabled)
		if o.live.Scheduler.Given() && state.Load == nil &&
			slices.ContainsFunc(enabled, func(p internalconfig.Plugin) bool { return p.Name == lowriskovercommitment.Name }) {
			warn("the load of the nodes is unknown, which " + lowriskovercommitment.Name +
				" scores: set --load or a --recording with load")
			return
		}
	}
}

// warnIncomplete warns about claims that the input lacks, and about extenders.
func warnIncomplete(state *engine.State, scheduler *engine.Scheduler, warn func(string)) {
	for _, sentence := range state.Objects.Missing {
		warn(sentence)
	}
	if len(state.Objects.Running)+len(state.Objects.Pending) == 0 {
		warn("found no pods in the input: all nodes count as empty")
	}
	if len(scheduler.Config.Extenders) > 0 {
		warn(scheduler.Source + ": its extenders are ignored")
	}
}

func score(ctx context.Context, state engine.State, scheduler engine.Scheduler) (scoreResult, error) {
	result := scoreResult{Pods: []engine.PodScores{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nodes, err := state.Engine(ctx, scheduler)
	if err != nil {
		return result, err
	}
	for _, pod := range state.Objects.Pending {
		profile, err := scheduler.ProfileOf(pod)
		if err != nil {
			return result, err
		}
		scores, err := nodes.Score(ctx, pod, profile.SchedulerName)
		if err != nil {
			return result, err
		}
		result.Pods = append(result.Pods, scores)
	}
	return result, nil
}
