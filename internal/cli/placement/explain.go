package placement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
)

// explainOptions are the flags of plimsoll placement explain.
type explainOptions struct {
	hub    base.Cluster
	output base.Output
}

func newExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain NAMESPACE/NAME",
		Short: "Explain the decisions of a placement",
		Long: `Show the evaluation of each cluster of a hub for a placement: the scores of all
prioritizers, or why the cluster is infeasible. The placement is evaluated over the
current objects of the hub. The hub is not changed.`,
		Example: `  plimsoll placement explain shop/web
  plimsoll placement explain shop/web -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	o.hub.AddFlags(cmd, "hub", 30*time.Second)
	o.output.AddFlag(cmd)
	return cmd
}

func (o *explainOptions) run(ctx context.Context, arg string, out io.Writer) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	namespace, name, ok := strings.Cut(arg, "/")
	if !ok || namespace == "" || name == "" {
		return fmt.Errorf("found %q, want a placement: NAMESPACE/NAME", arg)
	}
	config, err := o.hub.Config()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.hub.Timeout)
	defer cancel()
	hub, err := readLiveHub(ctx, c)
	if err != nil {
		return base.Failure(err)
	}
	state := stateOf(hub)
	key := types.NamespacedName{Namespace: namespace, Name: name}
	verdict, ok := state.Preview(key, time.Now())
	if !ok {
		return base.Failure(fmt.Errorf("placement %s not found", key))
	}
	return printOutcomes(out, &o.output, []outcome{{key, verdict, chosenBefore(hub, key)}})
}

// readLiveHub reads the objects of a hub that placements are decided by.
func readLiveHub(ctx context.Context, c client.Client) (*manifest.Hub, error) {
	var clusters clusterv1.ManagedClusterList
	var sets clusterv1beta2.ManagedClusterSetList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var scores clusterv1alpha1.AddOnPlacementScoreList
	var placements v1beta1.PlacementList
	var decisions clusterv1beta1.PlacementDecisionList
	for _, list := range []client.ObjectList{&clusters, &sets, &bindings, &scores, &placements, &decisions} {
		err := c.List(ctx, list)
		if meta.IsNoMatchError(err) {
			return nil, errors.New("the cluster is not a hub: it has no ManagedClusters or Placements of cluster.open-cluster-management.io")
		}
		if err != nil {
			return nil, fmt.Errorf("reading the hub: %w", err)
		}
	}
	return &manifest.Hub{
		Clusters: pointers(clusters.Items), Sets: pointers(sets.Items), Bindings: pointers(bindings.Items), Scores: pointers(scores.Items),
		Placements: pointers(placements.Items), Decisions: pointers(decisions.Items),
	}, nil
}

func pointers[T any](items []T) (out []*T) {
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}
