// Package controller is the command plimsoll-controller. It maintains resource slack, which is
// capacity reserved for future pods, and decides placements. As an agent, it reports about its
// cluster to a hub.
package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	runtimemanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

const name = "plimsoll-controller"

// Names of the controllers.
const (
	slackController     = "slack"
	placementController = "placement"
)

// podNamespaceFlag is the name of the flag for the namespace of placeholder pods.
const podNamespaceFlag = "placeholder-namespace"

// options are the flags.
type options struct {
	access    kube.Access
	namespace string
	// podNamespace is the namespace of placeholder pods, empty if they are not permitted.
	podNamespace  string
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
		Short: "Maintain resource slack, decide placements, or report about a cluster to a hub",
		Long: `slack: reserve capacity for future pods as ResourceSlacks specify, with placeholders
for an autoscaler that supports CapacityBuffers (Cluster Autoscaler, Karpenter) or, with
--placeholder-namespace, with pods of low priority. Its CRD must be installed:
config/crd/plimsoll.dev_resourceslacks.yaml.

placement: select managed clusters for Placements, on a hub of Open Cluster Management
or a cluster with its CRDs. The controller waits until the CRDs exist.

The namespace in --namespace must exist.

With --agent, the controllers do not run. The agent reports about its cluster to a hub,
in the AddOnPlacementScore and the ClusterCapacity "plimsoll" and in the status of the
ManagedCluster (docs/agent.md).`,
		Example: `  # Run in a cluster, and create a default policy with a rate of 10 %.
  plimsoll-controller --extra-capacity-min-rate=10%

  # Run on a hub without another placement controller, for all placements.
  plimsoll-controller --controllers=placement --adopt=all

  # Run outside the cluster.
  plimsoll-controller --kubeconfig ~/.kube/config --leader-elect=false

  # Run as an agent in a member cluster.
  plimsoll-controller --agent --cluster-name=cluster1 --hub-kubeconfig=/etc/hub/kubeconfig

  # Run as an agent that also reports the risk of the measured load.
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
			return o.access.Explain(o.serve(cmd.Context(), config))
		},
	}
	base.ConfigureService(cmd, func(cmd *cobra.Command) error {
		return errors.Join(o.complete(), o.agent.complete(cmd.Flags(), &o))
	})
	o.access.AddFlags(cmd, "cluster")
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "namespace", "plimsoll-system", "namespace of templates, buffers and the leader election lease")
	flags.StringVar(&o.podNamespace, podNamespaceFlag, "", "namespace of placeholder pods, with nothing else in it: the "+
		"controller may create Deployments there; enables backend Deployment of policies (default none)")
	flags.StringVar(&o.metrics, "metrics-bind-address", ":8080", "address of /metrics, 0 to disable")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "address of /healthz and /readyz, 0 to disable")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "elect a leader, so that only one of several replicas is active")
	flags.StringVar(&o.defaultRate, "extra-capacity-min-rate", "", "create the policy \"default\" for all nodes with this "+
		"rate, such as 10%, if it does not exist (default none)")
	flags.StringSliceVar(&o.controllers, "controllers", []string{slackController, placementController},
		"controllers to run: slack, placement")
	flags.StringVar(&o.adopt, "adopt", string(placement.AdoptAnnotated), "placements to decide: annotated "+
		"(with cluster.open-cluster-management.io/experimental-scheduling-disable=true, which the hub's own controller ignores) "+
		"or all (but those with this annotation)")
	base.CompleteWith(cmd, "controllers", slackController, placementController)
	base.CompleteWith(cmd, "adopt", string(placement.AdoptAnnotated), string(placement.AdoptAll))
	o.agent.addFlags(cmd)
	version.AddFlag(cmd)
	return cmd
}

// complete validates the flags and creates the default policy.
func (o *options) complete() error {
	for _, controller := range o.controllers {
		if controller != slackController && controller != placementController {
			return base.InvalidValue("controllers", controller, slackController+" or "+placementController)
		}
	}
	if o.adopt != string(placement.AdoptAnnotated) && o.adopt != string(placement.AdoptAll) {
		return base.InvalidValue("adopt", o.adopt, fmt.Sprintf("%s or %s", placement.AdoptAnnotated, placement.AdoptAll))
	}
	if err := o.checkAddresses(); err != nil {
		return err
	}
	if len(validation.IsDNS1123Label(o.namespace)) > 0 {
		return base.InvalidValue("namespace", o.namespace, "the name of a namespace")
	}
	if o.podNamespace != "" && (len(validation.IsDNS1123Label(o.podNamespace)) > 0 || o.podNamespace == o.namespace) {
		return base.InvalidValue(podNamespaceFlag, o.podNamespace, "the name of a namespace other than that of --namespace")
	}
	if o.defaultRate == "" {
		return nil
	}
	if _, err := v1alpha1.ParseRateFlag("extra-capacity-min-rate", o.defaultRate); err != nil {
		return err
	}
	o.defaultPolicy = &v1alpha1.ResourceSlack{}
	o.defaultPolicy.Name = "default"
	o.defaultPolicy.Spec.MinRate = o.defaultRate
	o.defaultPolicy.Spec.Default()
	return nil
}

// checkAddresses returns an error for an address that cannot be served, or is used twice.
func (o *options) checkAddresses() error {
	for flag, address := range map[string]string{"metrics-bind-address": o.metrics, "health-probe-bind-address": o.probes} {
		if address == "0" {
			continue
		}
		if err := base.CheckAddress(flag, address); err != nil {
			return err
		}
	}
	if _, port, err := net.SplitHostPort(o.metrics); err == nil && port != "0" && o.metrics == o.probes {
		return base.InvalidValue("health-probe-bind-address", o.probes, "another address than that of --metrics-bind-address, or 0")
	}
	return nil
}

// config returns access to the cluster.
func (o *options) config() (*rest.Config, error) {
	config, err := o.access.Config()
	if err != nil {
		return nil, err
	}
	config.UserAgent = name
	// The API server limits its clients fairly; a limit in the client would only delay large updates.
	config.QPS = -1
	return config, nil
}

// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks,verbs=create

// serve runs the controllers until ctx ends.
func (o *options) serve(ctx context.Context, config *rest.Config) error {
	ctrl.SetLogger(klog.NewKlogr())
	m, err := setup.New(config, o.managerOptions(name))
	if err != nil {
		return err
	}
	if slices.Contains(o.controllers, slackController) {
		controller := slack.New(m.GetClient(), m.GetEventRecorder(name), metrics.Registry, o.namespace, o.podNamespace)
		if err := controller.Register(m); err != nil {
			return err
		}
	}
	if slices.Contains(o.controllers, placementController) {
		controller := placement.New(m.GetClient(), m.GetAPIReader(), m.GetEventRecorder(name), metrics.Registry, placement.Adopt(o.adopt))
		if err := controller.Register(m); err != nil {
			return err
		}
	}
	if o.defaultPolicy != nil {
		err := m.Add(runtimemanager.RunnableFunc(func(ctx context.Context) error {
			if err := m.GetClient().Create(ctx, o.defaultPolicy.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("creating the default policy: %w", err)
			}
			return nil
		}))
		if err != nil {
			return err
		}
	}
	return start(ctx, m)
}

// start starts a manager with its health probes.
func start(ctx context.Context, m ctrl.Manager) error {
	for _, add := range []func(string, healthz.Checker) error{m.AddHealthzCheck, m.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

// managerOptions returns the options of a manager whose leader election lease has the name.
func (o *options) managerOptions(lease string) ctrl.Options {
	return ctrl.Options{
		LeaderElection:   o.leaderElect,
		LeaderElectionID: lease, LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:        o.probes,
	}
}
