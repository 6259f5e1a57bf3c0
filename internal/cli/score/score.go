// Package score has the commands that show how a scheduler scores nodes for a pod: score and
// explain.
package score

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// scoreOptions are the flags of plimsoll score.
type scoreOptions struct {
	objects   input.Objects
	instant   input.Instant
	scheduler input.Scheduler
	output    base.Output
}

// NewScoreCommand returns the command plimsoll score.
func NewScoreCommand() *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score (-f FILE_OR_DIR... | --snapshot FILE)",
		Short: "Score all nodes for each pending pod",
		Long: `Score all nodes for each pending pod with the code of kube-scheduler.

Nodes and pods are read from manifests or a snapshot. Pods with spec.nodeName run on
that node; all others are pending and are scored in the order of the input. No pod is
bound: each pod is scored as if it were the only pending one. If several nodes have
the highest total, kube-scheduler selects one of them at random; this command selects
the first in the order of the input.

Without --config, the default profile of kube-scheduler is used, with all plugins of
Plimsoll at weight 1.`,
		Example: `  # Score the nodes of the current cluster with the profile in scheduler.yaml.
  kubectl get nodes,pods -A -o yaml | plimsoll score -f - --config scheduler.yaml

  # Include the load of the nodes.
  plimsoll score -f cluster/ --load load.json --now 2026-11-21T12:00:00Z -o json

  # Use a snapshot, which includes the load.
  plimsoll score --snapshot s.tar.gz --config scheduler.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.objects.Files = append(o.objects.Files, args...)
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.objects.AddFlags(cmd, " of nodes and pods")
	o.scheduler.AddFlags(cmd, "file with a KubeSchedulerConfiguration (v1, v1beta3 or v1beta2)",
		"profile to score with (default the only one, or the one in the pod's spec.schedulerName)")
	o.instant.AddFlags(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

// scoreResult is the result in JSON and YAML.
type scoreResult struct {
	Pods []engine.PodScores `json:"pods"`
}

func (o *scoreOptions) run(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	warn := base.Warnings(errOut)
	if err := o.output.Validate(); err != nil {
		return err
	}
	if err := o.objects.Validate("nodes and pods"); err != nil {
		return err
	}
	cfg, err := o.scheduler.Read(warn)
	if err != nil {
		return err
	}
	state, err := o.objects.Read(ctx, in, o.instant, warn)
	if err != nil {
		return err
	}
	result, err := score(ctx, state, cfg, o.scheduler.Name)
	if err != nil {
		return err
	}
	return o.output.Print(out, result, func(out io.Writer) {
		if len(result.Pods) == 0 {
			warn("no pending pods in the input: all pods have spec.nodeName")
		}
		for _, pod := range result.Pods {
			printScores(out, pod)
		}
	})
}

func score(ctx context.Context, state *input.ClusterState, cfg *internalconfig.KubeSchedulerConfiguration,
	schedulerName string,
) (scoreResult, error) {
	result := scoreResult{Pods: []engine.PodScores{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	scheduler, err := newEngine(ctx, state, cfg)
	if err != nil {
		return result, err
	}
	for _, pod := range state.Objects.Pending {
		scores, err := scheduler.Score(ctx, pod, schedulerName)
		if err != nil {
			return result, err
		}
		result.Pods = append(result.Pods, scores)
	}
	return result, nil
}

// newEngine returns a scheduler over the state of a cluster. It runs until ctx ends.
func newEngine(ctx context.Context, state *input.ClusterState, cfg *internalconfig.KubeSchedulerConfiguration) (*engine.Engine, error) {
	cluster := engine.Cluster{Nodes: state.Objects.Nodes, Running: state.Objects.Running, References: state.Objects.Referred()}
	return engine.New(ctx, cluster, engine.Options{Config: cfg, Load: state.Load, Now: state.Now})
}
