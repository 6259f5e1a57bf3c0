package placement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// explainOptions are the flags of plimsoll placement explain.
type explainOptions struct {
	hub       base.Cluster
	namespace string
	output    base.Output
}

func newExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Explain the decisions of a placement",
		Long: `Show the evaluation of each cluster of a hub for a placement: the scores of all
prioritizers, or why the cluster is infeasible. The placement is evaluated over the
current objects of the hub. The hub is not changed.`,
		Example: `  plimsoll placement explain web -n shop
  plimsoll placement explain shop/web -o json`,
		Args: base.Placement.ExactlyOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), base.Warnings(cmd.ErrOrStderr()))
		},
	}
	o.hub.AddFlags(cmd, "hub", 30*time.Second)
	base.Placement.AddNamespaceFlag(cmd, &o.namespace, &o.hub)
	cmd.ValidArgsFunction = base.CompleteNames(&o.hub, v1beta1.GroupVersion.WithResource("placements"), &o.namespace)
	o.output.AddFlag(cmd)
	return cmd
}

func (o *explainOptions) run(ctx context.Context, arg string, out io.Writer, warn func(string)) error {
	key, err := base.Placement.ParseName(arg, o.namespace)
	if err != nil {
		return err
	}
	if key.Namespace == "" {
		if key.Namespace, err = o.hub.Namespace(); err != nil {
			return err
		}
	}
	hub, err := readLiveHub(ctx, &o.hub, warn)
	if err != nil {
		return err
	}
	result, ok := hub.State().Preview(key, time.Now())
	if !ok {
		return base.Failure(fmt.Errorf("placements %q not found in namespace %q", key.Name, key.Namespace))
	}
	return printOutcomes(out, &o.output, []outcome{{key, result, hub.Selected()[key]}})
}

// readLiveHub reads the objects of a hub that affect placements. Unless warn is nil, it calls warn if the user may not list
// ClusterCapacities.
func readLiveHub(ctx context.Context, hub *base.Cluster, warn func(string)) (*fleet.Objects, error) {
	config, err := hub.Config()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: kube.SchemeWith(fleet.InstallHub)})
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, hub.Timeout)
	defer cancel()
	objects, err := fleet.Read(func(list fleet.ObjectList) error {
		err := c.List(ctx, list)
		if _, ok := list.(*fleet.ClusterCapacityList); ok && warn != nil && apierrors.IsForbidden(err) {
			warn("listing ClusterCapacities is forbidden: " + unknownFits)
			return nil
		}
		return err
	})
	switch {
	case resources.IsNotServed(err):
		return nil, base.Failure(
			errors.New("the cluster is not a hub: it has no ManagedClusters or Placements of cluster.open-cluster-management.io"),
		)
	case err != nil:
		return nil, base.Failure(hub.Explain(fmt.Errorf("reading the hub: %w", err)))
	}
	for _, p := range objects.Placements {
		object := fleet.ReferenceOf(p)
		if object == nil {
			continue
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err), resources.IsNotServed(err): // the placement is misconfigured
		case err != nil:
			return nil, base.Failure(hub.Explain(fmt.Errorf("reading the workload of placement %s/%s: %w", p.Namespace, p.Name, err)))
		default:
			objects.Workloads = append(objects.Workloads, object)
		}
	}
	return objects, nil
}
