package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// scoreOptions are the flags of plimsoll score.
type scoreOptions struct {
	input
	instant

	config        string
	schedulerName string
	output        output
}

func newScoreCommand() *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score (-f FILE_OR_DIR... | --snapshot FILE)",
		Short: "Score every node for every pending pod, as the scheduler would",
		Long: `Score every node for every pending pod with the code of the real scheduler.

Nodes and pods come from manifests or a snapshot: pods with spec.nodeName run there, the
others are pending and are scored in the order of the files. Nothing is bound:
each pod is scored as if it came alone. Where totals are equal the scheduler
chooses at random; here the node given first is selected.

Without --config the scheduler's default profile is used, with all plugins of
Plimsoll's at weight 1.`,
		Example: `  # The cluster as it is, with the profile that is to be tried.
  kubectl get nodes,pods -A -o yaml | plimsoll score -f - --config scheduler.yaml

  # What load would change.
  plimsoll score -f cluster/ --load load.json --now 2026-11-21T12:00:00Z -o json

  # As it was when the snapshot was taken, its load included.
  plimsoll score --snapshot s.tar.gz --config scheduler.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.input.add(cmd, " of nodes and pods")
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "", "a KubeSchedulerConfiguration (v1, v1beta3 or v1beta2)")
	flags.StringVar(&o.schedulerName, "scheduler-name", "", "the profile to score with (default the only one, or the one a pod names)")
	o.instant.add(cmd)
	o.output.add(cmd)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
	return cmd
}

// scoreResult is the answer in JSON and YAML.
type scoreResult struct {
	Pods []engine.PodScores `json:"pods"`
}

func (o *scoreOptions) run(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	warn := warnings(errs)
	if err := o.output.validate(); err != nil {
		return err
	}
	if err := o.validate("nodes and pods"); err != nil {
		return err
	}
	cfg, err := configuration(o.config, warn)
	if err != nil {
		return err
	}
	is, err := o.read(ctx, in, o.instant, warn)
	if err != nil {
		return err
	}
	result, err := score(ctx, is, cfg, o.schedulerName)
	if err != nil {
		return err
	}
	return o.output.print(out, result, func(out io.Writer) {
		if len(result.Pods) == 0 {
			warn("no pending pods in what was given: all have spec.nodeName")
		}
		for _, pod := range result.Pods {
			printScores(out, pod)
		}
	})
}

// configuration reads the scheduler's configuration, and returns that of score if
// none is given.
func configuration(path string, warn func(string)) (*internalconfig.KubeSchedulerConfiguration, error) {
	if path == "" {
		return engine.DefaultConfig()
	}
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	if warning := config.LegacyWarning(cfg.APIVersion); warning != "" {
		warn(warning)
	}
	return cfg, nil
}

func score(ctx context.Context, is *situation, cfg *internalconfig.KubeSchedulerConfiguration, schedulerName string) (scoreResult, error) {
	result := scoreResult{Pods: []engine.PodScores{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	engine, err := is.engine(ctx, cfg)
	if err != nil {
		return result, err
	}
	for _, pod := range is.objects.Pending {
		scores, err := engine.Score(ctx, pod, schedulerName)
		if err != nil {
			return result, err
		}
		result.Pods = append(result.Pods, scores)
	}
	return result, nil
}

// engine returns the scheduler in this situation, until ctx ends.
func (s *situation) engine(ctx context.Context, cfg *internalconfig.KubeSchedulerConfiguration) (*engine.Engine, error) {
	cluster := engine.Cluster{Nodes: s.objects.Nodes, Running: s.objects.Running, Others: s.objects.Referred()}
	return engine.New(ctx, cluster, engine.Options{Config: cfg, Load: s.load, Now: s.now})
}
