package placement

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// fitOptions are the flags of plimsoll placement fit.
type fitOptions struct {
	workload []string
	replicas int64
	clusters input.Objects
	local    bool
	scaling  []string
	spec     scaling.Spec
	hub      base.Cluster
	output   base.Output
	// now and withSlack are the replicas of several templates that kube-scheduler places on the nodes of one cluster.
	now, withSlack int64
}

func newFitCommand() *cobra.Command {
	var o fitOptions
	cmd := &cobra.Command{
		Use:   "fit -f FILE_OR_DIR... [--clusters FILE_OR_DIR | --recording FILE | --local]",
		Short: "Show how many replicas of a workload fit each cluster",
		Long: `Show how many replicas of a workload fit each cluster: on the nodes as they are,
with the slack that placeholder pods hold, and with the nodes that the autoscaler can
add; after how long and at what price per hour all replicas can run; and what limits
them.

The workload is a Pod, PodTemplate, Deployment, ReplicaSet, StatefulSet, Job or
ManifestWork; several objects form one workload. The clusters are those of the hub,
as their agents report them in ClusterCapacities. The numbers are lower bounds, unless
selectors of the workload match pods of others on the hub's clusters; see docs/placement.md.
Nothing is changed.`,
		Example: `  plimsoll placement fit -f deployment.yaml
  plimsoll placement fit -f pod.yaml --replicas 20 --recording s.ndjson.gz
  plimsoll placement fit -f pod.yaml --local`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringArrayVarP(&o.workload, "filename", "f", nil,
		"file or directory with manifests of the workload, - for standard input; may be repeated")
	cmd.Flags().Int64Var(&o.replicas, "replicas", -1, "number of replicas (default that of the manifests)")
	cmd.Flags().StringArrayVar(&o.clusters.Files, "clusters", nil,
		"file or directory with manifests of ClusterCapacities, or of the nodes and pods of one cluster; may be repeated")
	input.AddRecordingFlag(cmd, &o.clusters.Recording)
	cmd.Flags().Lookup("recording").Usage = "recording of one cluster, or snapshot of a hub with ClusterCapacities"
	cmd.Flags().BoolVar(&o.local, "local", false, "read the nodes and pods of the cluster of the kubeconfig, which is no hub")
	cmd.Flags().StringArrayVar(&o.scaling, "autoscaler", nil, "for the nodes and pods of one cluster: group of nodes that an autoscaler "+
		"scales, such as shape=16x64,max=100,boot=120,cost=0.80; may be repeated")
	o.hub.AddFlags(cmd, "hub", 30*time.Second)
	input.ExcludeLive(cmd, "clusters", "recording")
	cmd.MarkFlagsMutuallyExclusive("local", "timeout")
	o.output.AddFlag(cmd)
	return cmd
}

func (o *fitOptions) run(cmd *cobra.Command) error {
	if len(o.workload) == 0 {
		return errors.New("--filename: required: files or directories with manifests of a workload")
	}
	var err error
	if o.spec, err = scaling.Parse(o.scaling); err != nil {
		return fmt.Errorf("--autoscaler: %w", err)
	}
	given := len(o.clusters.Files) > 0 || o.clusters.Recording != ""
	if o.clusters.Recording != "" && len(o.clusters.Files) > 0 || given && o.local {
		return errors.New("--clusters, --recording, --local: only one of them may be set")
	}
	workload, ignored, err := readWorkload(o.workload, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if text := ignored.String(); text != "" {
		base.Warnings(cmd.ErrOrStderr())("--filename: " + text)
	}
	warnOfTemplates(workload, base.Warnings(cmd.ErrOrStderr()))
	if cmd.Flags().Changed("replicas") {
		if err := fit.CheckReplicas(o.replicas); err != nil {
			return fmt.Errorf("--%w", err)
		}
		workload.Replicas = o.replicas
	}
	objects, now, err := o.read(cmd, workload)
	if err != nil {
		return err
	}
	return o.printFits(cmd.OutOrStdout(), workload, objects, now)
}

// warnOfTemplates warns of fields and values of templates that an API server would refuse, and of missing requests.
func warnOfTemplates(workload *fit.Workload, warn func(string)) {
	problems := workload.Unknown
	for _, part := range workload.Parts {
		given := part.Given()
		problems = append(problems, manifest.TemplateProblems(given, "")...)
		if requests := resources.RequestsOfTemplate(&given.Spec); requests.Cpu().IsZero() && requests.Memory().IsZero() {
			problems = append(problems, "has no requests for CPU or memory, so that neither limits the replicas")
		}
	}
	for _, problem := range problems {
		warn("--filename: the template of the workload: " + problem)
	}
}

// readWorkload reads the workload in manifests, and counts the objects of other kinds. One replica of several objects has the pods of all
// of them.
func readWorkload(paths []string, in io.Reader) (out *fit.Workload, ignored manifest.Ignored, err error) {
	var all []*fit.Workload
	seen := map[string]bool{}
	err = manifest.EachObject(manifest.Files(paths, in), func(group, kind string, object map[string]any) error {
		_, isHook, _ := unstructured.NestedString(object, "metadata", "annotations", "helm.sh/hook")
		switch {
		case isHook: // such as a test, which does not run beside the workload
			ignored.Add(schema.GroupKind{Kind: kind + " with helm.sh/hook"})
			return nil
		case !slices.Contains(fit.Kinds, kind):
			ignored.Add(schema.GroupKind{Group: group, Kind: kind})
			return nil
		}
		o := unstructured.Unstructured{Object: object}
		key := kind + " " + o.GetNamespace() + "/" + o.GetName()
		if seen[key] && o.GetName() != "" {
			return errors.New("found twice")
		}
		seen[key] = true
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		w, err := fit.ReadWorkload(raw)
		all = append(all, w)
		return err
	})
	switch {
	case err != nil:
		return nil, ignored, err
	case len(all) == 0:
		return nil, ignored, fmt.Errorf("--filename: found no workload: must be one of %s%s", strings.Join(fit.Kinds, ", "),
			strings.TrimSuffix("; "+ignored.String(), "; "))
	}
	out = all[0]
	if len(all) > 1 {
		out = fit.Join(all)
	}
	out.SetDefaultNamespace(v1.NamespaceDefault)
	return out, ignored, nil
}

var errWithHub = errors.New("--autoscaler: requires the nodes and pods of one cluster: ClusterCapacities have node pools of their own")

// read returns the capacities of clusters with the objects of their hub, and the time: zero for the time of each observation.
func (o *fitOptions) read(cmd *cobra.Command, workload *fit.Workload) (*fleet.Objects, time.Time, error) {
	if !o.local && o.clusters.Recording == "" && len(o.clusters.Files) == 0 {
		if len(o.scaling) > 0 {
			return nil, time.Time{}, errWithHub
		}
		hub, err := readLiveHub(cmd.Context(), &o.hub, nil)
		if err == nil && len(hub.Capacities) == 0 {
			err = base.Failure(
				errors.New("the hub has no ClusterCapacities: run the agent in the clusters (docs/agent.md), or use --local"),
			)
		}
		return hub, time.Now(), err
	}
	warn := base.Warnings(cmd.ErrOrStderr())
	if o.local {
		state, err := input.ReadObjects(cmd, &o.hub.Access, warn)
		if err != nil {
			return nil, time.Time{}, err
		}
		return o.oneCluster(cmd.Context(), state.Objects, workload, state.Now)
	}
	hub, cluster, now, err := o.readInput(cmd.InOrStdin())
	switch {
	case err != nil:
		return nil, now, err
	case hub != nil && len(o.scaling) > 0:
		return nil, now, errWithHub
	case hub != nil:
		return &hub.Objects, now, o.clusters.Warn(hub.Warnings, warn)
	}
	if err := o.clusters.Warn(cluster.Warnings, warn); err != nil {
		return nil, now, err
	}
	return o.oneCluster(cmd.Context(), cluster, workload, now)
}

// readInput returns the hub in manifests or a recording if they have ClusterCapacities, or else the cluster in them, and the time.
func (o *fitOptions) readInput(in io.Reader) (hub *manifest.Hub, cluster *manifest.Objects, now time.Time, err error) {
	if o.clusters.Recording == "" {
		var stdin bytes.Buffer
		hub, err = manifest.ReadHubFrom(manifest.Files(o.clusters.Files, io.TeeReader(in, &stdin)), false)
		if err != nil || len(hub.Capacities) > 0 {
			return hub, nil, time.Time{}, err
		}
		if cluster, err = manifest.Read(o.clusters.Files, &stdin); err != nil {
			err = fmt.Errorf("--clusters: no ClusterCapacities, and as one cluster: %w", err)
		}
		return nil, cluster, time.Now(), err
	}
	read, err := recording.OpenFlag(o.clusters.Recording)
	if err == nil && len(read.List(v1alpha1.Resource)) == 0 {
		instant, err := recording.OpenAt(o.clusters.Recording, now)
		return nil, instant.Objects, instant.Time, err
	}
	if err != nil {
		return nil, nil, now, err
	}
	if hub, err = read.Hub(false); err != nil {
		err = fmt.Errorf("--recording: %s: %w", o.clusters.Recording, err)
	}
	return hub, nil, read.About.To, err
}

// oneCluster returns the capacity of a cluster without a name.
func (o *fitOptions) oneCluster(
	ctx context.Context, objects *manifest.Objects, workload *fit.Workload, now time.Time,
) (*fleet.Objects, time.Time, error) {
	in := &summarize.Input{Now: now, Pods: summarize.Pods{}}
	for _, n := range objects.Nodes {
		in.Nodes = append(in.Nodes, summarize.NewNode(n))
	}
	for _, p := range objects.Running {
		in.Pods.Set(summarize.NewPod(p))
	}
	added, most, err := o.spec.NewNodes(objects.Nodes)
	if err != nil {
		return nil, now, fmt.Errorf("--autoscaler: %w", err)
	}
	for i, n := range added {
		group, price := &o.spec.Groups[i], ""
		if o.spec.IsPriced {
			price = strconv.FormatFloat(group.Cost, 'f', -1, 64)
		}
		in.Pools = append(in.Pools, summarize.Pool{
			Name: group.Name, Source: summarize.SourceClusterAutoscaler, Zone: n.Labels[v1.LabelTopologyZone], MaxNodes: most[i],
			BootSeconds: int32(group.Boot), PricePerHour: price, Template: summarize.NewNode(n),
		})
	}
	scheduler, err := (&input.Scheduler{}).Read("default", nil)
	if err != nil {
		return nil, now, err
	}
	local, err := localOf(ctx, objects, workload, scheduler)
	if err != nil {
		return nil, now, err
	}
	summary, err := fit.NewLocalSummary(summarize.SummarizeNodes(in), local)
	if err == nil && len(workload.Parts) > 1 {
		o.now, o.withSlack, err = countSets(ctx, objects, workload, summary, scheduler)
	}
	return &fleet.Objects{Capacities: []*fleet.ClusterCapacity{{Summary: summary}}}, now, err
}

// localOf returns the nodes of a cluster for each template of a workload. The filters of kube-scheduler with its default profile decide
// which nodes the pods fit.
func localOf(
	ctx context.Context, objects *manifest.Objects, workload *fit.Workload, scheduler engine.Scheduler,
) (map[*fit.Template]*fit.Local, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	filters, err := engine.State{Objects: objects}.Engine(ctx, scheduler)
	if err != nil {
		return nil, err
	}
	references, out := manifest.NewReferences(objects.Others), map[*fit.Template]*fit.Local{}
	for _, part := range workload.Parts {
		pod, rejected := part.Pod("replica"), map[string]string{}
		manifest.SetPodDefaults(pod)
		references.RemoveMissing(pod)
		scores, err := filters.Score(ctx, pod, "")
		if err != nil {
			return nil, err
		}
		for _, n := range scores.Nodes {
			// What depends on the node alone is also in the summary.
			if !n.Feasible && !slices.Contains([]string{names.TaintToleration, names.NodeAffinity, names.NodeUnschedulable, ""}, n.Filter) {
				rejected[n.Name] = n.Reason
			}
		}
		out[part.Template] = part.NewLocal(objects.Nodes, objects.Running, rejected)
	}
	return out, nil
}

// fitsResult is the result in JSON and YAML.
type fitsResult struct {
	Replicas int64       `json:"replicas"`
	Clusters []fitResult `json:"clusters"`
}

// fitResult is the fit of one cluster.
type fitResult struct {
	// Cluster is empty for a cluster that is not on a hub.
	Cluster   string `json:"cluster"`
	Now       int64  `json:"now"`
	WithSlack int64  `json:"withSlack"`
	// ScaledUp is null if the autoscaler is not known.
	ScaledUp *int64 `json:"scaledUp"`
	// WaitSeconds and CostPerHour are null if they are unknown, or if the replicas never fit.
	WaitSeconds *int64   `json:"waitSeconds"`
	NewNodes    int64    `json:"newNodes"`
	CostPerHour *float64 `json:"costPerHour"`
	// Limit is what limits the replicas.
	Limit string `json:"limit"`
}

// fitOf returns the fit of a workload in a cluster, at least what is placed on its nodes, and in words what limits it.
func (o *fitOptions) fitOf(state *fleet.State, w *fit.Workload, cluster string, at time.Time) (fit.Fit, string) {
	count, limit := state.FitOf(w, cluster, at)
	count.Now, count.WithSlack = max(count.Now, o.now), max(count.WithSlack, o.withSlack)
	if count.ScaledUp = max(count.ScaledUp, count.WithSlack); w.Replicas <= o.withSlack {
		count.Wait, count.NewNodes, count.Cost = 0, 0, 0
	}
	return count, limit
}

// printFits prints the fit of each cluster, by name.
func (o *fitOptions) printFits(out io.Writer, w *fit.Workload, objects *fleet.Objects, now time.Time) error {
	result, state := fitsResult{Replicas: w.Replicas, Clusters: []fitResult{}}, objects.State()
	slices.SortFunc(objects.Capacities, func(a, b *fleet.ClusterCapacity) int { return cmp.Compare(a.Namespace, b.Namespace) })
	for _, c := range objects.Capacities {
		at := now
		if at.IsZero() && c.Err == nil {
			at = time.Unix(c.Summary.ObservedAt, 0)
		}
		count, limit := o.fitOf(state, w, c.Namespace, at)
		row := fitResult{
			Cluster: c.Namespace, Now: max(count.Now, 0), WithSlack: max(count.WithSlack, 0), NewNodes: count.NewNodes, Limit: limit,
		}
		if c.Namespace != "" || len(o.scaling) > 0 {
			row.ScaledUp = new(max(count.ScaledUp, 0))
		}
		if count.Wait != fit.Unknown {
			row.WaitSeconds = &count.Wait
		}
		if count.Cost != fit.Unknown {
			row.CostPerHour = new(float64(count.Cost) / 1e6)
		}
		result.Clusters = append(result.Clusters, row)
	}
	return o.output.Print(out, result, func(out io.Writer) {
		t := base.NewTable("cluster", "now", "with slack", "scaled up", "wait", "cost per hour")
		for i := range result.Clusters {
			c := &result.Clusters[i]
			scaledUp, wait, cost := "-", "-", "-"
			if c.ScaledUp != nil {
				scaledUp = strconv.FormatInt(*c.ScaledUp, 10)
			}
			if c.WaitSeconds != nil {
				wait = format.Age(time.Duration(*c.WaitSeconds) * time.Second)
			}
			if c.CostPerHour != nil {
				cost = strconv.FormatFloat(*c.CostPerHour, 'f', -1, 64)
			}
			t.AddRow(cmp.Or(c.Cluster, "this"), c.Now, c.WithSlack, scaledUp, wait, cost)
		}
		t.Print(out, &o.output)
		for i := range result.Clusters {
			c := &result.Clusters[i]
			fmt.Fprintf(out, "%s: %s\n", base.Escape(cmp.Or(c.Cluster, "this")), base.Escape(c.Limit))
			if c.ScaledUp == nil && c.WithSlack < w.Replicas {
				fmt.Fprintln(out, "The nodes that an autoscaler can add are not known: --autoscaler adds a group of them.")
			}
		}
	})
}
