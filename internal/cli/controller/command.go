// Package controller is the command plimsoll-controller. It keeps resource slack, which is capacity
// reserved for future pods, and decides placements. As an agent, it reports about its cluster to a
// hub.
package controller

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

const name = "plimsoll-controller"

// options are the flags.
type options struct {
	kubeconfig    string
	namespace     string
	metrics       string
	probes        string
	leaderElect   bool
	controllers   []string
	adopt         string
	defaultRate   string
	defaultPolicy *v1alpha1.ResourceSlack
	agent         agentOptions
}

// NewCommand returns the command plimsoll-controller.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   name,
		Short: "Keep resource slack, decide placements, or report about a cluster to a hub",
		Long: `slack: keep room to spare for the next pods, as policies of kind ResourceSlack want
it: placeholders that an autoscaler with CapacityBuffers holds (Cluster Autoscaler,
Karpenter), or real pods that give way to any other. Its CRD
(config/crd/plimsoll.dev_resourceslacks.yaml) must be installed.

placement: on a hub of Open Cluster Management, or one with its CRDs, choose managed
clusters for Placements. It waits until the CRDs are there.

The namespace must exist.

With --agent it does nothing of that: it tells a hub about the cluster that it runs in,
in the scores of an AddOnPlacementScore "plimsoll" and in the status of the
ManagedCluster (docs/agent.md).`,
		Example: `  # In a cluster, with a policy of 10 % if there is none.
  plimsoll-controller --extra-capacity-min-rate=10%

  # On a hub, for all placements: there is no other controller for them.
  plimsoll-controller --controllers=placement --adopt=all

  # On trial, from outside.
  plimsoll-controller --kubeconfig ~/.kube/config --leader-elect=false

  # In a member cluster, reporting to its hub.
  plimsoll-controller --agent --cluster-name=cluster1 --hub-kubeconfig=/etc/hub/kubeconfig

  # The same with the risk of the measured load.
  plimsoll-controller --agent --cluster-name=cluster1 --hub-kubeconfig=/etc/hub/kubeconfig \
    --load-provider=KubernetesMetricsServer`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			klog.SetOutput(os.Stderr)
			config, err := o.config()
			if err != nil {
				return base.UsageError(err)
			}
			if o.agent.enabled {
				return o.serveAgent(cmd.Context(), config)
			}
			return o.serve(cmd.Context(), config)
		},
	}
	base.ConfigureService(cmd, func(cmd *cobra.Command) error {
		return errors.Join(o.complete(), o.agent.complete(cmd.Flags(), &o))
	})
	flags := cmd.Flags()
	kube.AddFlag(cmd, &o.kubeconfig, "cluster")
	flags.StringVar(&o.namespace, "namespace", "plimsoll-system", "namespace of templates, buffers, deployments and the leader's lease")
	flags.StringVar(&o.metrics, "metrics-bind-address", ":8080", "address of /metrics, 0 for none")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "address of /healthz and /readyz, 0 for none")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "only one of several controllers works at a time")
	flags.StringVar(&o.defaultRate, "extra-capacity-min-rate", "", "make a policy \"default\" for all nodes with this rate, such as 10%, if it is not there (default none)")
	flags.StringSliceVar(&o.controllers, "controllers", []string{slackController, placementController}, "what to do: slack, placement")
	flags.StringVar(&o.adopt, "adopt", string(placement.AdoptAnnotated), "which placements to decide: annotated (with cluster.open-cluster-management.io/experimental-scheduling-disable=true, which takes them from the hub's own controller) or all")
	_ = cmd.RegisterFlagCompletionFunc("controllers", cobra.FixedCompletions([]string{slackController, placementController}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("adopt", cobra.FixedCompletions([]string{string(placement.AdoptAnnotated), string(placement.AdoptAll)}, cobra.ShellCompDirectiveNoFileComp))
	o.agent.add(cmd)
	version.AddFlag(cmd)
	return cmd
}

// The controllers there are.
const (
	slackController     = "slack"
	placementController = "placement"
)

// complete checks the flags and works out the default policy.
func (o *options) complete() error {
	for _, controller := range o.controllers {
		if controller != slackController && controller != placementController {
			return fmt.Errorf("--controllers: found %q, want %s or %s", controller, slackController, placementController)
		}
	}
	if o.adopt != string(placement.AdoptAnnotated) && o.adopt != string(placement.AdoptAll) {
		return fmt.Errorf("--adopt: found %q, want %s or %s", o.adopt, placement.AdoptAnnotated, placement.AdoptAll)
	}
	if o.defaultRate == "" {
		return nil
	}
	if _, err := v1alpha1.ParseRate(o.defaultRate); err != nil {
		return fmt.Errorf("--extra-capacity-min-rate: %w", err)
	}
	o.defaultPolicy = &v1alpha1.ResourceSlack{}
	o.defaultPolicy.Name = "default"
	o.defaultPolicy.Spec.MinRate = o.defaultRate
	o.defaultPolicy.Spec.Default()
	return nil
}

// config returns access to the cluster.
func (o *options) config() (*rest.Config, error) {
	config, err := kube.Config(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = name
	// The API server knows how much it can take, and is fair: with a limit of its
	// own the controller would be slow where there is much to do.
	config.QPS = -1
	return config, nil
}
