package score

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
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/snapshot"
)

// NewExplainCommand returns the command plimsoll explain, which accepts TYPE/NAME as kubectl does.
func NewExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := base.NewGroup("explain", "Explain how a scheduler selects a node", newExplainPodCommand())
	o.addFlags(cmd)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = true }) // shown by the subcommand
	showHelp := cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		resource, _, hasName := strings.Cut(args[0], "/")
		switch {
		case !hasName:
			return base.UnknownCommand(cmd, args[0])
		case !base.Pod.Has(resource):
			return fmt.Errorf("invalid argument %q: cannot explain %q: must be pod/NAME (-n sets the namespace)", args[0], resource)
		}
		return base.Pod.ExactlyOne(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return showHelp(cmd, args)
		}
		return o.run(cmd, args[0])
	}
	return cmd
}

// explainOptions are the flags of plimsoll explain pod.
type explainOptions struct {
	objects   input.Objects
	instant   input.Instant
	live      input.LiveCluster
	namespace string
	top       int
	output    base.Output
}

// defaultProfile is the profile of default-scheduler if its configuration is unknown.
const defaultProfile = "default"

func newExplainPodCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:     "pod NAME [-n NAMESPACE] [-f FILE_OR_DIR... | --snapshot FILE]",
		Aliases: base.Pod.Others,
		Short:   "Explain which node a scheduler selects for a pod, and why",
		Long: `Explain which node a scheduler selects for a pod: the raw, normalized and weighted
score of each plugin, the load of the nodes and its age, why nodes are infeasible,
and one sentence on why the selected node is the best. A score such as
0 (-200) x2 = 0 is the normalized score, the raw score, the weight of the plugin if it
is not 1, and the weighted score, which is added to the total.

The pod is read from a live cluster (--kubeconfig, --context; by default as kubectl
finds it; the cluster is not changed), from a snapshot (--snapshot) or from manifests
(-f). A pod that already has a node is evaluated as if it were pending: it is removed
from its node first, and the result says whether it would be scheduled there again.

The pod is evaluated with the profile that its spec.schedulerName names: in --config,
or in the configuration that the Helm chart has stored in a ConfigMap of the live cluster
(if you may list ConfigMaps), or else the default profile of kube-scheduler. A warning
says that the profile of a scheduler is unknown. With --profile, every pod is evaluated with that profile. Built-in profiles:
` + strings.Join(engine.BuiltInProfiles, ", ") + `.

The load of a live cluster is read from the source in the configuration, or else as by
plimsoll load top, with the same flags.

The result can differ from the decision of the scheduler: it stops when it has found
enough feasible nodes, it selects one of several best nodes at random, and pods that
were created since then change the scores.`,
		Example: `  # Explain the node of a pod, with the configuration of its scheduler.
  plimsoll explain pod web-7d4b9c-x2x8p -n shop --config scheduler.yaml

  # Show which node another profile would select.
  plimsoll explain pod shop/web-7d4b9c-x2x8p --profile low-risk

  # Use a snapshot, and print all nodes as JSON.
  plimsoll explain pod shop/web-7d4b9c-x2x8p --snapshot s.tar.gz -o json`,
		Args: base.Pod.ExactlyOne,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := o.completePodNames(cmd.Context())
			if o.namespace != "" {
				names = inNamespace(names, o.namespace)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.addFlags(cmd)
	return cmd
}

// addFlags adds the flags to a command.
func (o *explainOptions) addFlags(cmd *cobra.Command) {
	base.Pod.AddNamespaceFlag(cmd, &o.namespace)
	o.objects.AddFlags(cmd, " of nodes and pods")
	o.objects.AddRecordingFlags(cmd)
	o.instant.AddFlags(cmd)
	o.live.LoadSource.AddShort(cmd)
	addSchedulerFlags(cmd, &o.live.Scheduler)
	cmd.Flags().IntVar(&o.top, "top", 10, "number of feasible nodes to show, the best first; 0 for all")
	o.output.AddFlag(cmd)
	base.Group(cmd, base.GroupInput, "filename", "snapshot", "recording", "at")
	base.Group(cmd, base.GroupCluster, "provider", "address", "load-source")
	base.Rare(cmd, "strict", "now", "load", "scheduler-name")
	for _, offline := range []string{"filename", "snapshot", "recording"} {
		for _, live := range []string{"provider", "kubeconfig", "context"} {
			cmd.MarkFlagsMutuallyExclusive(offline, live)
		}
	}
}

func (o *explainOptions) run(cmd *cobra.Command, arg string) error {
	warn := base.Warnings(cmd.ErrOrStderr())
	if err := o.validate(); err != nil {
		return err
	}
	key, err := base.Pod.ParseName(arg, o.namespace)
	if err != nil {
		return err
	}
	scheduler, err := o.live.Scheduler.Read(defaultProfile, warn)
	if err != nil {
		return err
	}
	read := o.readLive
	if o.objects.Given() {
		read = o.readFiles
	}
	state, pod, err := read(cmd, key, &scheduler, warn)
	if err != nil {
		return err
	}
	explained, err := engine.Pod(cmd.Context(), *state, scheduler, pod)
	if err != nil {
		return err
	}
	if warning := scheduler.Warning(explained.Profile); warning != "" {
		warn(warning)
	}
	for _, limitation := range engine.Limitations(pod, explained.Selected, state.Objects.Running) {
		warn(limitation)
	}
	e := newExplanation(explained, *state)
	return o.output.Print(cmd.OutOrStdout(), e, func(out io.Writer) { e.print(out, &o.output, o.top) })
}

func (o *explainOptions) validate() error {
	if o.top < 0 {
		return base.InvalidValue("top", o.top, "at least 0")
	}
	if !o.objects.Given() && (o.instant.Load != "" || o.instant.Now != "") {
		return errors.New("--load, --now: require --filename, --snapshot or --recording")
	}
	if err := o.objects.ValidateExclusive(); err != nil {
		return err
	}
	return o.output.Validate()
}

// readFiles reads the cluster, its load and the pod from manifests or a snapshot.
func (o *explainOptions) readFiles(
	cmd *cobra.Command, key types.NamespacedName, _ *engine.Scheduler, warn func(string),
) (*engine.State, *v1.Pod, error) {
	state, err := o.objects.Read(cmd.Context(), cmd.InOrStdin(), o.instant, warn)
	if err != nil {
		return nil, nil, err
	}
	if key.Namespace == "" {
		key.Namespace = metav1.NamespaceDefault
	}
	pod, err := findPod(state.Objects, key)
	return state, pod, err
}

// readLive reads a live cluster, its load and the pod. Unless flags select a scheduler
// configuration, it uses the configuration that is stored in the cluster.
func (o *explainOptions) readLive(
	cmd *cobra.Command, key types.NamespacedName, scheduler *engine.Scheduler, warn func(string),
) (*engine.State, *v1.Pod, error) {
	if err := o.live.UseConfig(cmd); err != nil {
		return nil, nil, err
	}
	access, err := o.live.LoadSource.Config()
	if err != nil {
		return nil, nil, err
	}
	if key.Namespace == "" {
		if key.Namespace, err = o.live.LoadSource.Namespace(); err != nil {
			return nil, nil, err
		}
	}
	read, err := input.ReadObjects(cmd, access, []string{snapshot.FolderCluster}, warn)
	if err != nil {
		return nil, nil, err
	}
	objects, err := read.Cluster()
	if err != nil {
		return nil, nil, base.Failure(err)
	}
	pod, err := findPod(objects, key)
	if err != nil {
		return nil, nil, base.Failure(err)
	}
	var sources []metricprovider.Config
	if !o.live.Scheduler.Given() {
		client, err := kubernetes.NewForConfig(access)
		if err != nil {
			return nil, nil, err
		}
		if sources, err = o.usePublished(cmd, client, pod, scheduler, warn); err != nil {
			return nil, nil, base.Failure(err)
		}
	}
	o.live.ReadLoad(cmd.Context(), access, read, warn, sources...)
	for _, warning := range objects.Warnings {
		warn(warning)
	}
	return &engine.State{Objects: objects, Load: read.Load, Now: time.Now()}, pod, nil
}

// usePublished uses the scheduler configuration that is stored in the cluster, if there is one for the
// pod, and returns its load source unless a flag selects another source.
func (o *explainOptions) usePublished(
	cmd *cobra.Command, client kubernetes.Interface, pod *v1.Pod, scheduler *engine.Scheduler, warn func(string),
) ([]metricprovider.Config, error) {
	published, found, err := input.PublishedScheduler(
		cmd.Context(), client, cmp.Or(o.live.Scheduler.Name, pod.Spec.SchedulerName), warn)
	if err != nil || !found {
		return nil, err
	}
	published.ProfileName = o.live.Scheduler.Name
	*scheduler = published
	profile, err := scheduler.ProfileOf(pod)
	if source, ok := input.LoadSourceOf(*scheduler, profile); ok && !cmd.Flags().Changed("provider") {
		return []metricprovider.Config{source}, err
	}
	return nil, err
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
	config, err := o.live.LoadSource.Config()
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	pods, err := client.CoreV1().Pods(o.namespace).List(ctx, metav1.ListOptions{Limit: completionLimit})
	if err != nil {
		return nil
	}
	var names []string
	for i := range pods.Items {
		names = append(names, resources.Name(&pods.Items[i]))
	}
	return names
}

// inNamespace returns the names of the pods in a namespace, without the namespace.
func inNamespace(names []string, namespace string) []string {
	var out []string
	for _, name := range names {
		if name, found := strings.CutPrefix(name, namespace+"/"); found {
			out = append(out, name)
		}
	}
	return out
}

// podNames returns the sorted names of all pods.
func podNames(objects *manifest.Objects) []string {
	var names []string
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		names = append(names, resources.Name(pod))
	}
	slices.Sort(names)
	return names
}
