package main

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
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
)

// explainOptions are the flags of plimsoll placement explain.
type explainOptions struct {
	kubeconfig string
	output     output
	timeout    time.Duration
}

func newPlacementExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain NAMESPACE/NAME",
		Short: "Why does a placement choose these clusters?",
		Long: `Show how every cluster of a hub stands for a placement: the score that each
prioritizer gives, or why the cluster is out of the question. It is reckoned from
what the hub says now; nothing is changed.`,
		Example: `  plimsoll placement explain shop/web
  plimsoll placement explain shop/web -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "access to the hub (default the pod's own, $KUBECONFIG or ~/.kube/config)")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the API server")
	o.output.add(cmd)
	_ = cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

func (o *explainOptions) run(ctx context.Context, name string, out io.Writer) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	namespace, placement, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || placement == "" {
		return fmt.Errorf("found %q, want NAMESPACE/NAME of a placement", name)
	}
	config, err := kube.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	hub, err := readLiveHub(ctx, c)
	if err != nil {
		return &failure{err}
	}
	state := stateOf(hub)
	key := types.NamespacedName{Namespace: namespace, Name: placement}
	verdict, ok := state.Preview(key, time.Now())
	if !ok {
		return &failure{fmt.Errorf("there is no placement %s", key)}
	}
	return printVerdicts(out, &o.output, []namedVerdict{{key, verdict, chosenBefore(hub, key)}})
}

// readLiveHub reads all that placements look at.
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
			return nil, errors.New("this cluster is no hub: it has no ManagedClusters or Placements of cluster.open-cluster-management.io")
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
