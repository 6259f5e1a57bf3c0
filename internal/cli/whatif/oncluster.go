package whatif

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/oncluster"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// clusterOptions are the flags of commands that can run simulations in a cluster.
type clusterOptions struct {
	enabled     bool
	access      kube.Access
	namespace   string
	image       string
	parallelism int
}

// defaultParallelism is the default of --parallelism.
const defaultParallelism = 4

// clusterHelp is the help text on --on-cluster.
const clusterHelp = `With --on-cluster the simulations run in the pods of an Indexed Job in --namespace, from
--image, which has this program in the same version, and the result is the same. The Job
and everything that belongs to it are deleted at the end and after Ctrl-C. docs/tune.md
has the rights that you need.`

// addFlags adds the flags.
func (c *clusterOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&c.enabled, "on-cluster", false, "run the simulations in the pods of a Job in a cluster")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "with --on-cluster: namespace of the Job (default that of the context)")
	flags.StringVar(&c.image, "image", "", "with --on-cluster: image of plimsoll in this version")
	flags.IntVar(&c.parallelism, "parallelism", defaultParallelism, "with --on-cluster: number of pods at the same time, each with one CPU")
	c.access.AddFlags(cmd, "cluster")
}

// validate returns an error for an invalid flag or combination of flags.
func (c *clusterOptions) validate(cmd *cobra.Command) error {
	if !c.enabled {
		for _, flag := range []string{"namespace", "image", "parallelism", "kubeconfig", "context"} {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s: requires --on-cluster", flag)
			}
		}
		return nil
	}
	switch {
	case c.image == "":
		return errors.New("--image: required with --on-cluster: the image of plimsoll in this version")
	case c.parallelism < 1 || c.parallelism > oncluster.MaxParallelism:
		return base.InvalidValue("parallelism", c.parallelism, fmt.Sprintf("between 1 and %d", oncluster.MaxParallelism))
	}
	return nil
}

// runner returns what runs jobs: processes on this machine, or pods. It shows a progress bar.
func (c *clusterOptions) runner(cmd *cobra.Command) (job.Runner, error) {
	out := cmd.ErrOrStderr()
	if !c.enabled {
		return job.RunnerFunc(func(ctx context.Context, jobs []job.Job) ([]*result.Run, error) {
			bar := base.NewRunProgress(out, len(jobs))
			defer bar.End()
			return job.Pool{Command: selfCommand, Processes: runtime.GOMAXPROCS(0), Progress: bar.Show}.Run(ctx, jobs)
		}), nil
	}
	config, err := c.access.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	namespace := c.namespace
	if namespace == "" {
		if namespace, err = c.access.Namespace(); err != nil {
			return nil, err
		}
	}
	return job.RunnerFunc(func(ctx context.Context, jobs []job.Job) ([]*result.Run, error) {
		bar := base.NewRunProgress(out, len(jobs))
		defer bar.End()
		return oncluster.New(oncluster.Options{
			Client: client, Namespace: namespace, Image: c.image, Version: version.Get().Version, Parallelism: c.parallelism,
			Retries: oncluster.DefaultRetries,
			Warn:    base.Warnings(out), Progress: func(done int) {
				for i := range done {
					bar.Show(i, 1, 1)
				}
			},
		}).Run(ctx, jobs)
	}), nil
}

// NewIndexCommand returns the hidden command that runs the jobs of one index in a pod.
func NewIndexCommand() *cobra.Command {
	pod := oncluster.Pod{Version: version.Get().Version, Pool: job.Pool{Command: selfCommand, Processes: 1}}
	cmd := &cobra.Command{
		Use:    oncluster.IndexCommand,
		Short:  "Run the simulations of one index of a Job (for plimsoll itself)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			index, err := strconv.Atoi(os.Getenv(oncluster.IndexVariable))
			if err != nil {
				return fmt.Errorf("%s: invalid value %q: must be a number", oncluster.IndexVariable, os.Getenv(oncluster.IndexVariable))
			}
			config, err := (&kube.Access{}).Config()
			if err != nil {
				return err
			}
			if pod.Client, err = kubernetes.NewForConfig(config); err != nil {
				return err
			}
			pod.Index = index
			if err := pod.Run(cmd.Context()); err != nil {
				return base.Failure(err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&pod.Input, "input", "", "directory with the parts of the input")
	flags.StringVar(&pod.Work, "work", "", "directory for files")
	flags.StringVar(&pod.Namespace, "namespace", "", "namespace of the Job")
	flags.StringVar(&pod.Sweep, "sweep", "", "name of the Job")
	return cmd
}
