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
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/agent"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
)

// loadPrefix is before the names of the flags that choose a source of load.
const loadPrefix = "load-"

// agentFlags are the flags that have a meaning with --agent only, beside those
// of the source of load.
var agentFlags = []string{"cluster-name", "hub-kubeconfig", "interval", "valid-for", "report-resources"}

// agentOptions are the flags of the agent.
type agentOptions struct {
	enabled       bool
	cluster       string
	hubKubeconfig string
	interval      time.Duration
	validFor      time.Duration
	resources     string
	load          flags.Flags
}

// add adds the flags to a command.
func (a *agentOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&a.enabled, "agent", false, "report to a hub about this cluster, and do nothing else")
	flags.StringVar(&a.cluster, "cluster-name", "", "agent: name of this cluster on the hub")
	flags.StringVar(&a.hubKubeconfig, "hub-kubeconfig", "", "agent: access to the hub, read again as it changes")
	flags.DurationVar(&a.interval, "interval", 30*time.Second, "agent: time between two reports, at least 1s")
	flags.DurationVar(&a.validFor, "valid-for", 0, "agent: how long scores hold if no report follows, at least twice the interval (default three times the interval)")
	flags.StringVar(&a.resources, "report-resources", string(agent.Auto), "agent: write the nodes' resources into the status of the ManagedCluster: auto (if nobody else has), always, never")
	_ = cmd.RegisterFlagCompletionFunc("report-resources", cobra.FixedCompletions([]string{string(agent.Auto), string(agent.Always), string(agent.Never)}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("hub-kubeconfig")
	a.load.AddOptional(cmd, loadPrefix)
}

// complete fills in what was not given, and says what is wrong.
func (a *agentOptions) complete(flags *pflag.FlagSet, o *options) error {
	if !a.enabled {
		var pointless []string
		flags.Visit(func(flag *pflag.Flag) {
			if slices.Contains(agentFlags, flag.Name) || strings.HasPrefix(flag.Name, loadPrefix) {
				pointless = append(pointless, "--"+flag.Name)
			}
		})
		if len(pointless) > 0 {
			return fmt.Errorf("%s: only with --agent", strings.Join(pointless, ", "))
		}
		return nil
	}
	a.load.SetKubeconfig(o.kubeconfig)
	if a.validFor == 0 {
		a.validFor = 3 * a.interval
	}
	switch {
	case o.defaultRate != "":
		return errors.New("--extra-capacity-min-rate: not with --agent, which keeps no slack")
	case a.cluster == "":
		return errors.New("--cluster-name: want the name of this cluster on the hub")
	case len(validation.IsDNS1123Label(a.cluster)) > 0:
		return fmt.Errorf("--cluster-name: found %q, want the name of a namespace: %s", a.cluster, validation.IsDNS1123Label(a.cluster)[0])
	case a.hubKubeconfig == "":
		return errors.New("--hub-kubeconfig: want a file with access to the hub")
	case a.interval < time.Second:
		return fmt.Errorf("--interval: found %s, want at least 1s", a.interval)
	case a.validFor < 2*a.interval:
		return fmt.Errorf("--valid-for: found %s, want at least twice --interval, %s", a.validFor, 2*a.interval)
	case !slices.Contains([]string{string(agent.Auto), string(agent.Always), string(agent.Never)}, a.resources):
		return fmt.Errorf("--report-resources: found %q, want auto, always or never", a.resources)
	}
	return nil
}

// serveAgent runs the agent until ctx ends.
func (o *options) serveAgent(ctx context.Context, config *rest.Config) error {
	ctrl.SetLogger(klog.NewKlogr())
	a := &o.agent
	hub, err := agent.NewHub(a.hubKubeconfig, name+"-agent")
	if err != nil {
		return base.UsageError(fmt.Errorf("--hub-kubeconfig: %w", err))
	}
	source, err := a.source(ctx)
	if err != nil {
		return base.UsageError(err)
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:           kube.Scheme(),
		LeaderElection:   o.leaderElect,
		LeaderElectionID: name + "-agent", LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:        o.probes,
		Cache:                         agent.CacheOptions(),
	})
	if err != nil {
		return err
	}
	member, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	options := agent.Options{
		Cluster: a.cluster, Hub: hub, Interval: a.interval, ValidFor: a.validFor, Resources: agent.ReportResources(a.resources),
	}
	if source != nil {
		if options.Load, err = a.readLoad(m, source); err != nil {
			return err
		}
	}
	if err := agent.New(options, member, metrics.Registry).Register(ctx, m); err != nil {
		return err
	}
	for _, add := range []func(string, healthz.Checker) error{m.AddHealthzCheck, m.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

// source returns the source of load, nil if none was chosen.
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

// maxLoadAge is how old load may be and still be scored.
const maxLoadAge = 5 * time.Minute

// readLoad makes a manager read the source once in an interval, on the replica
// that reports.
func (a *agentOptions) readLoad(m ctrl.Manager, source load.Source) (*load.Store, error) {
	store, collector := load.NewStore(max(maxLoadAge, 2*a.interval), nil), &telemetry.Collector{}
	collector.Watch(source.String(), store)
	if err := metrics.Registry.Register(collector); err != nil {
		return nil, err
	}
	return store, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		store.Run(ctx, source, a.interval, func(state load.State) {
			switch {
			case state.Degraded:
				klog.ErrorS(state.Err, "There is no fresh load: its score is left out", "maxAge", store.MaxAge())
			case state.Err != nil:
				klog.ErrorS(state.Err, "Load cannot be read, or only part of it; what was known is used until it is too old", "maxAge", store.MaxAge())
			default:
				klog.InfoS("Load is read", "nodes", len(store.Fresh().Reading().Nodes))
			}
		})
		return nil
	}))
}
