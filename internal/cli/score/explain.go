package score

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
)

// NewExplainCommand returns the command plimsoll explain.
func NewExplainCommand() *cobra.Command {
	return base.NewGroup("explain", "Explain how a scheduler selects a node", newExplainPodCommand())
}

// explainOptions are the flags of plimsoll explain pod.
type explainOptions struct {
	objects input.Objects
	instant input.Instant
	live    input.LiveCluster
	profile string
	top     int
	output  base.Output
}

func newExplainPodCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "pod NAMESPACE/NAME [-f FILE_OR_DIR... | --snapshot FILE]",
		Short: "Explain which node a scheduler selects for a pod, and why",
		Long: `Explain which node a scheduler selects for a pod: the raw, normalized and weighted
score of each plugin, the load of the nodes and its age, why nodes are infeasible,
and one sentence on why the selected node is the best.

The pod is read from a live cluster (--kubeconfig, by default as kubectl finds it; the
cluster is not changed), from a snapshot (--snapshot) or from manifests (-f). A pod
that already has a node is evaluated as if it were pending: it is removed from its
node first, and the result says whether it would be scheduled there again.

The scheduler is kube-scheduler with the configuration in --config or a built-in
--profile: ` + strings.Join(profiles.Names, ", ") + `. By default, the
default profile is used, with all plugins of Plimsoll at weight 1. The load of a live
cluster is read from the source in the configuration, or else as by plimsoll load top,
with the same flags.`,
		Example: `  # Explain the node of a pod, with the configuration of its scheduler.
  plimsoll explain pod shop/web-7d4b9c-x2x8p --config scheduler.yaml

  # Show which node another profile would select.
  plimsoll explain pod shop/web-7d4b9c-x2x8p --profile low-risk

  # Use a snapshot, and print all nodes as JSON.
  plimsoll explain pod shop/web-7d4b9c-x2x8p --snapshot s.tar.gz -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("found %d arguments: must be one, NAMESPACE/NAME of a pod", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.completePodNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.objects.AddFlags(cmd, " of nodes and pods")
	o.instant.AddFlags(cmd)
	o.live.AddFlags(cmd, "file with a KubeSchedulerConfiguration (v1, v1beta3 or v1beta2)")
	flags := cmd.Flags()
	flags.StringVar(&o.profile, "profile", "", "built-in profile, or file with a KubeSchedulerConfiguration, in place of --config")
	flags.IntVar(&o.top, "top", 10, "number of feasible nodes to show, the best first; 0 for all")
	o.output.AddFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profiles.Names, cobra.ShellCompDirectiveDefault))
	for _, offline := range []string{"filename", "snapshot"} {
		for _, live := range []string{"provider", "kubeconfig"} {
			cmd.MarkFlagsMutuallyExclusive(offline, live)
		}
	}
	cmd.MarkFlagsMutuallyExclusive("config", "profile")
	return cmd
}

func (o *explainOptions) run(cmd *cobra.Command, arg string) error {
	warn := base.Warnings(cmd.ErrOrStderr())
	if err := o.validate(); err != nil {
		return err
	}
	namespace, name, err := parsePodName(arg)
	if err != nil {
		return err
	}
	cfg, err := o.schedulerConfig(warn)
	if err != nil {
		return err
	}
	state, err := o.clusterState(cmd, warn)
	if err != nil {
		return err
	}
	e, err := explain(cmd.Context(), state, cfg, o.live.Scheduler.Name, namespace, name)
	if err != nil {
		return err
	}
	return o.output.Print(cmd.OutOrStdout(), e, func(out io.Writer) { e.print(out, o.top) })
}

func (o *explainOptions) validate() error {
	if o.top < 0 {
		return base.InvalidValue("top", o.top, "at least 0")
	}
	if !o.objects.Given() && (o.instant.Load != "" || o.instant.Now != "") {
		return errors.New("--load, --now: require --filename or --snapshot")
	}
	if err := o.objects.ValidateExclusive(); err != nil {
		return err
	}
	return o.output.Validate()
}

// parsePodName splits NAMESPACE/NAME. The namespace of a name alone is default.
func parsePodName(text string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = v1.NamespaceDefault, text
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("invalid argument %q: must be NAMESPACE/NAME of a pod", text)
	}
	return namespace, name, nil
}

// schedulerConfig returns the configuration in --profile or --config.
func (o *explainOptions) schedulerConfig(warn func(string)) (*internalconfig.KubeSchedulerConfiguration, error) {
	if o.profile == "" {
		return o.live.Scheduler.Read(warn)
	}
	profile, err := profiles.Read(o.profile)
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	cfg, err := profile.Config()
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	return cfg, nil
}

// clusterState reads the cluster and its load.
func (o *explainOptions) clusterState(cmd *cobra.Command, warn func(string)) (*input.ClusterState, error) {
	if o.objects.Given() {
		return o.objects.Read(cmd.Context(), cmd.InOrStdin(), o.instant, warn)
	}
	read, err := o.live.Read(cmd, []string{snapshot.FolderCluster}, warn)
	if err != nil {
		return nil, err
	}
	objects, err := read.Cluster()
	if err != nil {
		return nil, base.Failure(err)
	}
	for _, warning := range objects.Warnings {
		warn(warning)
	}
	return &input.ClusterState{Objects: objects, Load: read.Load, Now: time.Now()}, nil
}

// completePodNames returns names of pods for shell completion, none if they cannot be read.
func (o *explainOptions) completePodNames(ctx context.Context) []string {
	if !o.objects.Given() {
		return o.livePodNames(ctx)
	}
	if slices.Contains(o.objects.Files, "-") {
		return nil
	}
	state, err := o.objects.Read(ctx, nil, input.Instant{}, func(string) {})
	if err != nil {
		return nil
	}
	return podNames(state.Objects)
}

// Limits of shell completion from a live cluster.
const (
	completionLimit   = 500
	completionTimeout = 5 * time.Second
)

func (o *explainOptions) livePodNames(ctx context.Context) []string {
	config, err := o.live.Config()
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: completionLimit})
	if err != nil {
		return nil
	}
	var names []string
	for i := range pods.Items {
		names = append(names, facts.Name(&pods.Items[i]))
	}
	return names
}

// podNames returns the sorted names of all pods.
func podNames(objects *manifest.Objects) []string {
	var names []string
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		names = append(names, facts.Name(pod))
	}
	slices.Sort(names)
	return names
}
