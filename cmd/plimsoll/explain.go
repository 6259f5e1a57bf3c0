package main

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

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
)

func newExplainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Why does a pod go where it goes?",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExplainPodCommand())
	return cmd
}

// explainPodOptions are the flags of plimsoll explain pod.
type explainPodOptions struct {
	input
	instant
	live

	profile string
	top     int
	output  output
}

func newExplainPodCommand() *cobra.Command {
	var o explainPodOptions
	cmd := &cobra.Command{
		Use:   "pod NAMESPACE/NAME [-f FILE_OR_DIR... | --snapshot FILE]",
		Short: "Say what a scheduler makes of every node for a pod",
		Long: `Say what a scheduler makes of every node for a pod: what each plugin scores, raw,
normalised and by its weight, how busy the nodes are and how old that knowledge is,
why nodes are out, and in a sentence why the best is the best.

The pod is in a cluster that is asked (--kubeconfig, by default as kubectl finds it;
it is only read), in a snapshot (--snapshot) or in manifests (-f). A pod that has a
node is judged as if it were to be placed now: it is taken off its node first, and the
answer says whether it would go there again.

The scheduler is the real one, with the configuration of --config or a ready-made
--profile: ` + strings.Join(profiles.Names, ", ") + `. Without either
it is the default profile, with all plugins of Plimsoll's at weight 1. In a cluster
that is asked, load is read from where the configuration says, or else as
plimsoll load top reads it, with the same flags.`,
		Example: `  # Why is it where it is? With the configuration of the scheduler that put it there.
  plimsoll explain pod shop/web-7d4b9c-x2x8p --config scheduler.yaml

  # Where would it go under another profile?
  plimsoll explain pod shop/web-7d4b9c-x2x8p --profile low-risk

  # As it was when the snapshot was taken, for programs: all nodes.
  plimsoll explain pod shop/web-7d4b9c-x2x8p --snapshot s.tar.gz -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("found %d arguments, want a pod: NAMESPACE/NAME", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.podNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.input.add(cmd, " of nodes and pods")
	o.instant.add(cmd)
	o.live.add(cmd, "a KubeSchedulerConfiguration (v1, v1beta3 or v1beta2)")
	flags := cmd.Flags()
	flags.StringVar(&o.profile, "profile", "", "a ready-made profile, or a file with a KubeSchedulerConfiguration, in place of --config")
	flags.IntVar(&o.top, "top", 10, "how many of the nodes that the pod fits to show, the best; 0 for all")
	o.output.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profiles.Names, cobra.ShellCompDirectiveDefault))
	for _, given := range []string{"filename", "snapshot"} {
		for _, other := range []string{"provider", "kubeconfig"} {
			cmd.MarkFlagsMutuallyExclusive(given, other)
		}
	}
	cmd.MarkFlagsMutuallyExclusive("config", "profile")
	return cmd
}

func (o *explainPodOptions) run(cmd *cobra.Command, name string) error {
	warn := warnings(cmd.ErrOrStderr())
	if err := o.output.validate(); err != nil {
		return err
	}
	switch {
	case o.top < 0:
		return fmt.Errorf("--top: found %d, want at least 0", o.top)
	case len(o.files) > 0 && o.snapshot != "":
		return errors.New("--filename, --snapshot: want one of them")
	case o.isLive() && (o.load != "" || o.now != ""):
		return errors.New("--load, --now: want them with --filename or --snapshot")
	}
	namespace, pod, err := parsePodName(name)
	if err != nil {
		return err
	}
	cfg, err := o.scheduler(warn)
	if err != nil {
		return err
	}
	is, err := o.situation(cmd, warn)
	if err != nil {
		return err
	}
	explained, err := explain(cmd.Context(), is, cfg, o.schedulerName, namespace, pod)
	if err != nil {
		return err
	}
	return o.output.print(cmd.OutOrStdout(), explained, func(out io.Writer) { explained.print(out, o.top) })
}

// isLive reports whether a cluster is to be asked.
func (o *explainPodOptions) isLive() bool { return len(o.files) == 0 && o.snapshot == "" }

// parsePodName takes NAMESPACE/NAME apart; a name alone is one of the namespace
// default.
func parsePodName(text string) (namespace, name string, err error) {
	namespace, name, both := strings.Cut(text, "/")
	if !both {
		namespace, name = v1.NamespaceDefault, text
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("found %q, want a pod: NAMESPACE/NAME", text)
	}
	return namespace, name, nil
}

// scheduler returns the configuration to explain with.
func (o *explainPodOptions) scheduler(warn func(string)) (*internalconfig.KubeSchedulerConfiguration, error) {
	if o.profile == "" {
		return configuration(o.config, warn)
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

// situation returns the cluster, with the load that is known of it.
func (o *explainPodOptions) situation(cmd *cobra.Command, warn func(string)) (*situation, error) {
	if !o.isLive() {
		return o.input.read(cmd.Context(), cmd.InOrStdin(), o.instant, warn)
	}
	read, err := o.live.read(cmd, []string{snapshot.FolderCluster}, warn)
	if err != nil {
		return nil, err
	}
	objects, err := read.Cluster()
	if err != nil {
		return nil, &failure{err}
	}
	for _, warning := range objects.Warnings {
		warn(warning)
	}
	return &situation{objects: objects, load: read.Load, now: time.Now()}, nil
}

// podNames returns the names of pods to complete. What goes wrong completes to
// nothing.
func (o *explainPodOptions) podNames(ctx context.Context) []string {
	if o.isLive() {
		return o.livePodNames(ctx)
	}
	if slices.Contains(o.files, "-") {
		return nil
	}
	is, err := o.input.read(ctx, nil, instant{}, func(string) {})
	if err != nil {
		return nil
	}
	return podNames(is.objects)
}

const (
	// mostNames are offered for completion, and timeToComplete is for how long anybody
	// waits for that.
	mostNames      = 500
	timeToComplete = 5 * time.Second
)

func (o *explainPodOptions) livePodNames(ctx context.Context) []string {
	config, err := kube.Config(o.source.Kubeconfig())
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeToComplete)
	defer cancel()
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: mostNames})
	if err != nil {
		return nil
	}
	var names []string
	for i := range pods.Items {
		names = append(names, facts.Name(&pods.Items[i]))
	}
	return names
}

// podNames returns the names of all pods.
func podNames(objects *manifest.Objects) []string {
	var names []string
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		names = append(names, facts.Name(pod))
	}
	slices.Sort(names)
	return names
}

// print prints what people want to know: the best nodes, why the others are out, and
// a sentence.
func (e *explained) print(out io.Writer, top int) {
	fmt.Fprintf(out, "%s/%s, %s\n", e.Namespace, e.Name, e.where())
	feasible, excluded := e.parted()
	shown := feasible
	if top > 0 && len(shown) > top {
		shown = slices.Clone(shown[:top])
		if i := slices.IndexFunc(feasible[top:], func(n explainedNode) bool { return n.Name == e.Node }); i >= 0 {
			shown = append(shown, feasible[top+i])
		}
	}
	if len(shown) > 0 {
		e.table(shown, feasible).render(out)
	}
	if more := len(feasible) - len(shown); more > 0 {
		fmt.Fprintf(out, "and %d more that it fits (--top)\n", more)
	}
	for _, reason := range excluded {
		fmt.Fprintln(out, reason)
	}
	if e.Load != nil {
		fmt.Fprintf(out, "load: mean ± deviation over %s, from %s, %s old\n", seconds(e.Load.WindowSeconds), e.Load.Source, seconds(e.Load.AgeSeconds))
	} else {
		fmt.Fprintln(out, "load: not known")
	}
	fmt.Fprintln(out, e.Reason)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}
