package score

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

// NewExplainCommand returns the command plimsoll explain, which accepts TYPE/NAME as kubectl does.
func NewExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := base.NewGroup(
		"explain",
		"Explain how a scheduler selects a node, and what keeps nodes",
		newExplainPodCommand(),
		newExplainNodeCommand(),
	)
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
			return fmt.Errorf(
				"invalid argument %q: cannot explain %q: must be pod/NAME (-n sets the namespace), or node NAME",
				args[0],
				resource,
			)
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
	options

	namespace string
	top       int
}

// defaultProfile is the profile of default-scheduler if its configuration is unknown.
const defaultProfile = "default"

func newExplainPodCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:     "pod NAME [-n NAMESPACE] [-f FILE_OR_DIR... | --recording FILE]",
		Aliases: base.Pod.Others,
		Short:   "Explain which node a scheduler selects for a pod, and why",
		Long: `Explain which node a scheduler selects for a pod: the raw, normalized and weighted
score of each plugin for the best node and for the second best, or for the node of the
pod, the load of the nodes and its age, why nodes are infeasible, and one sentence on
why the selected node is the best. --top and -o wide have more nodes. A score such as
0 (-200) x2 = 0 is the normalized score, the raw score, the weight of the plugin if it
is not 1, and the weighted score, which is added to the total.

The pod is read from a live cluster, a recording or manifests. A pod that has a node is
evaluated as if it were pending, and the result says whether it would be scheduled there
again.

The pod is evaluated with the profile that its spec.schedulerName names: in --config,
or in the configuration that the Helm chart has stored in a ConfigMap of the live cluster
(if you may list ConfigMaps), or else, with a warning, the default profile of
kube-scheduler. With --profile, every pod is evaluated with that profile. Built-in profiles:
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
  plimsoll explain pod shop/web-7d4b9c-x2x8p --recording s.ndjson.gz -o json`,
		Args:              base.Pod.ExactlyOne,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
		ValidArgsFunction: o.completeNames,
	}
	o.addFlags(cmd)
	return cmd
}

// addFlags adds the flags to a command.
func (o *explainOptions) addFlags(cmd *cobra.Command) {
	base.Pod.AddNamespaceFlag(cmd, &o.namespace, &o.live.LoadSource)
	o.options.addFlags(cmd)
	cmd.Flags().IntVar(&o.top, "top", compared, "number of feasible nodes to show, the best first, a row each if more than 2; 0 for all")
	input.ExcludeLive(cmd, "filename", "recording")
	o.output.AddFlag(cmd)
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
	read := o.readLive
	if o.objects.Given() {
		read = o.readFiles
	}
	var scheduler engine.Scheduler
	state, pod, err := read(cmd, key, &scheduler, warn)
	if err == nil && scheduler.Config == nil {
		scheduler, err = o.live.Scheduler.Read(defaultProfile, warn)
	}
	if err != nil {
		return err
	}
	warnIncomplete(state, &scheduler, warn)
	explained, err := engine.Pod(cmd.Context(), *state, scheduler, pod)
	if err != nil {
		return err
	}
	if warning := scheduler.Warning(explained.Profile); warning != "" {
		warn(warning)
		if !o.objects.Given() && isUntouched(pod) {
			explained.Reason = fmt.Sprintf("No scheduler serves %s here: the pod stays pending. With the profile %s: %s",
				explained.Profile.Requested, explained.Profile.SchedulerName, explained.Reason)
		}
	}
	for _, limitation := range engine.Limitations(pod, explained.Selected, state.Objects.Running) {
		warn(limitation)
	}
	e := newExplanation(explained, *state)
	return o.output.Print(cmd.OutOrStdout(), e, func(out io.Writer) { e.print(out, &o.output, o.top) })
}

// isUntouched reports whether no scheduler has tried to place a pod.
func isUntouched(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && !slices.ContainsFunc(pod.Status.Conditions,
		func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
}

func (o *explainOptions) validate() error {
	if o.top < 0 {
		return base.InvalidValue("top", o.top, "at least 0")
	}
	return o.options.validate()
}

// readFiles reads the cluster, its load and the pod from manifests or a recording.
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
	return state, pod, base.Failure(err)
}

// readLive reads a live cluster, its load and the pod. Unless flags select a scheduler
// configuration, it uses the configuration that is stored in the cluster.
func (o *explainOptions) readLive(
	cmd *cobra.Command, key types.NamespacedName, scheduler *engine.Scheduler, warn func(string),
) (*engine.State, *v1.Pod, error) {
	if key.Namespace == "" {
		var err error
		if key.Namespace, err = o.live.LoadSource.Namespace(); err != nil {
			return nil, nil, err
		}
	}
	var pod *v1.Pod
	state, err := o.live.ReadState(cmd, warn, func(config *rest.Config, objects *manifest.Objects) ([]metricprovider.Config, error) {
		var err error
		if pod, err = findPod(objects, key); err != nil || o.live.Scheduler.Given() {
			return nil, err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return o.usePublished(cmd, client, pod, scheduler, warn)
	})
	return state, pod, err
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
	if source, ok := input.LoadSourceOf(
		*scheduler,
		profile,
	); ok && !cmd.Flags().Changed("provider") &&
		!cmd.Flags().Changed("load-source") {
		return []metricprovider.Config{source}, err
	}
	return nil, err
}

// completeNames completes the argument with the names of the pods of the namespace, none if they cannot be read.
func (o *explainOptions) completeNames(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if !o.objects.Given() {
		return base.CompleteNames(&o.live.LoadSource, v1.SchemeGroupVersion.WithResource("pods"), &o.namespace)(cmd, args, text)
	}
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeFrom(cmd, &o.objects, func(objects *manifest.Objects) (names []string) {
		for _, name := range podNames(objects) {
			if name, found := strings.CutPrefix(name, cmp.Or(o.namespace, v1.NamespaceDefault)+"/"); found {
				names = append(names, name)
			}
		}
		return names
	})
}

// completeFrom completes an argument with names of objects in the input, none if it cannot be read.
func completeFrom(cmd *cobra.Command, o *input.Objects, names func(*manifest.Objects) []string) ([]string, cobra.ShellCompDirective) {
	slices.Sort(o.Files) // the completion parses flags twice
	o.Files = slices.Compact(o.Files)
	if slices.Contains(o.Files, "-") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	state, err := o.Read(cmd.Context(), nil, input.Instant{}, func(string) {})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(state.Objects), cobra.ShellCompDirectiveNoFileComp
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
