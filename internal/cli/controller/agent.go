package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/agent"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
)

// loadPrefix is the prefix of the flags that select a load source.
const loadPrefix = "load-"

// agentFlags are the flags that require --agent, in addition to the flags of the load source.
var agentFlags = []string{"cluster-name", "hub-kubeconfig", "interval", "valid-for", "report-resources", "quota-namespaces"}

// agentOptions are the flags of the agent.
type agentOptions struct {
	enabled       bool
	cluster       string
	hubKubeconfig string
	interval      time.Duration
	validFor      time.Duration
	resources     string
	quotas        []string
	load          flags.Flags
}

// addFlags adds the flags to a command.
func (a *agentOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&a.enabled, "agent", false, "report about this cluster to a hub instead of running controllers")
	flags.StringVar(&a.cluster, "cluster-name", "", "agent: name of this cluster on the hub")
	flags.StringVar(&a.hubKubeconfig, "hub-kubeconfig", "", "agent: kubeconfig file of the hub, reloaded when it changes")
	flags.DurationVar(&a.interval, "interval", 30*time.Second, "agent: time between reports, at least 1s")
	flags.DurationVar(&a.validFor, "valid-for", 0, "agent: validity of a report's scores, at least twice the interval "+
		"(default three times the interval)")
	flags.StringVar(&a.resources, "report-resources", string(agent.Auto),
		"agent: report the resources of the nodes in the status of the ManagedCluster: auto (unless another agent does), always, never")
	flags.StringSliceVar(&a.quotas, "quota-namespaces", nil,
		"agent: namespaces whose quotas limit the capacity that is reported for them")
	base.CompleteWith(cmd, "report-resources", string(agent.Auto), string(agent.Always), string(agent.Never))
	_ = cmd.MarkFlagFilename("hub-kubeconfig")
	a.load.AddOptional(cmd, loadPrefix)
}

// complete sets defaults and validates the flags.
func (a *agentOptions) complete(flags *pflag.FlagSet, o *options) error {
	if !a.enabled {
		var unusable []string
		flags.Visit(func(flag *pflag.Flag) {
			if slices.Contains(agentFlags, flag.Name) || strings.HasPrefix(flag.Name, loadPrefix) {
				unusable = append(unusable, "--"+flag.Name)
			}
		})
		if len(unusable) > 0 {
			return fmt.Errorf("%s: requires --agent", strings.Join(unusable, ", "))
		}
		return nil
	}
	a.load.SetCluster(o.access.Kubeconfig, o.access.Context)
	if a.validFor == 0 {
		a.validFor = 3 * a.interval
	}
	switch {
	case a.load.Chosen() && !flags.Changed(loadPrefix+"provider"):
		return fmt.Errorf("--%sprovider: required with the other flags of the load source", loadPrefix)
	case o.defaultRate != "":
		return errors.New("--extra-capacity-min-rate: not with --agent, which does not maintain slack")
	case a.cluster == "":
		return errors.New("--cluster-name: required: the name of this cluster on the hub")
	case len(validation.IsDNS1123Label(a.cluster)) > 0:
		return base.InvalidValue("cluster-name", a.cluster, "the name of a namespace: "+validation.IsDNS1123Label(a.cluster)[0])
	case a.hubKubeconfig == "":
		return errors.New("--hub-kubeconfig: required: the kubeconfig file of the hub")
	case a.interval < time.Second:
		return base.InvalidValue("interval", a.interval, "at least 1s")
	case a.validFor < 2*a.interval:
		return base.InvalidValue("valid-for", a.validFor, fmt.Sprintf("at least twice --interval, %s", 2*a.interval))
	case !slices.Contains([]string{string(agent.Auto), string(agent.Always), string(agent.Never)}, a.resources):
		return base.InvalidValue("report-resources", a.resources, "auto, always or never")
	}
	return nil
}

// serveAgent runs the agent until ctx ends.
func (o *options) serveAgent(ctx context.Context, config *rest.Config) error {
	ctrl.SetLogger(klog.NewKlogr())
	a := &o.agent
	managerOptions := o.managerOptions(name + "-agent")
	lease, err := setup.ElectLeader(config, &managerOptions)
	if err != nil {
		return err
	}
	hub, err := agent.NewHub(a.cluster, a.hubKubeconfig, name+"-agent", lease.RefuseWrites)
	if err != nil {
		return base.UsageError(fmt.Errorf("--hub-kubeconfig: %w", err))
	}
	source, err := a.source(ctx)
	if err != nil {
		return base.UsageError(err)
	}
	m, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return err
	}
	member, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	options := agent.Options{
		Hub: hub, Interval: a.interval, ValidFor: a.validFor, Resources: agent.ReportResources(a.resources),
		QuotaNamespaces: a.quotas,
	}
	if source != nil {
		if options.Load, err = a.readLoad(ctx, m, source); err != nil {
			return err
		}
	}
	if err := agent.New(options, member, metrics.Registry).Register(m); err != nil {
		return err
	}
	return start(ctx, m)
}

// source returns the load source, nil if none is selected.
func (a *agentOptions) source(ctx context.Context) (load.Source, error) {
	if !a.load.Chosen() {
		return nil, nil
	}
	access, err := a.load.Access(ctx)
	if err != nil {
		return nil, err
	}
	return a.load.Source(access)
}

// readLoad adds a runnable to the manager that reads the source at each interval. It runs on the
// leader only.
func (a *agentOptions) readLoad(ctx context.Context, m ctrl.Manager, source load.Source) (*load.Store, error) {
	store, collector := load.NewStore(max(metricprovider.DefaultMaxAge, 2*a.interval), nil), &telemetry.Collector{}
	collector.Watch(ctx, source.String(), store)
	if err := metrics.Registry.Register(collector); err != nil {
		return nil, err
	}
	return store, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		store.Run(ctx, source, a.interval, func(state load.State) {
			switch {
			case state.Degraded:
				klog.ErrorS(state.Err, "No fresh load, its score is not reported", "maxAge", store.MaxAge())
			case state.Err != nil:
				klog.ErrorS(state.Err, "Failed to read all load, using the previous reading until it is too old", "maxAge", store.MaxAge())
			default:
				klog.InfoS("Read load", "nodes", len(store.Fresh().Reading().Nodes))
			}
		})
		return nil
	}))
}
