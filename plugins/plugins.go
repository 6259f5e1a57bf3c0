// Package plugins registers Plimsoll's score plugins with a kube-scheduler:
//
//	command := app.NewSchedulerCommand(plugins.Options()...)
//
// The constructor of each plugin is in its own package.
package plugins

import (
	"time"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourcesallocatable"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourceslimits"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

// Plugin describes one score plugin.
type Plugin struct {
	// Name of the plugin in the scheduler configuration.
	Name string
	// Description says in one line how the plugin scores nodes.
	Description string
	factory     runtime.PluginFactory
}

// All lists the plugins. Everything that knows the plugins by name derives from it.
var All = []Plugin{
	{
		Name:        noderesourceslimits.Name,
		Description: "by the amount that limits leave free: spread limits evenly",
		factory:     noderesourceslimits.New,
	},
	{
		Name:        lowriskovercommitment.Name,
		Description: "by the risk of overcommitment, from limits and measured load",
		factory:     lowriskovercommitment.New,
	},
	{
		Name:        predictedutilization.Name,
		Description: "by the predicted peak of CPU and memory, from what was measured of pods and nodes",
		factory:     predictedutilization.New,
	},
	{
		Name:        noderesourcesallocatable.Name,
		Description: "by allocatable amount: fill small nodes first, or pack large ones",
		factory:     noderesourcesallocatable.New,
	},
}

// Registry returns the constructors of all plugins. Plugins created by them share the sums per node
// and the readings of load, so a registry is for one scheduler.
func Registry() runtime.Registry { return registry(shared.New()) }

// RegistryWithLoad returns the constructors of all plugins for a scheduler whose load comes from
// stores created by newStore, and the usage of pods from stores created by newPodStore, in place of the sources that the
// plugins' arguments configure. Both are passed the age up to which readings count. newPodStore is called for plugins whose
// arguments configure a source of the usage of pods; if it is nil, they get none. Plugins of extra registries get load from
// the same stores; they replace plugins of the same name.
func RegistryWithLoad(
	newStore func(maxAge time.Duration) (*load.Store, error), newPodStore func(maxAge time.Duration) (*load.PodStore, error),
	extra ...runtime.Registry,
) runtime.Registry {
	return registry(shared.NewWithLoad(newStore, newPodStore), extra...)
}

func registry(state *shared.State, extra ...runtime.Registry) runtime.Registry {
	registry := make(runtime.Registry, len(All))
	for _, plugin := range All {
		registry[plugin.Name] = state.Share(plugin.factory)
	}
	for _, further := range extra {
		for name, factory := range further {
			registry[name] = state.Share(factory)
		}
	}
	return registry
}

// Options returns the plugins as options of the kube-scheduler command.
func Options() []app.Option {
	registry := registry(shared.New())
	options := make([]app.Option, 0, len(All))
	for _, plugin := range All {
		options = append(options, app.WithPlugin(plugin.Name, registry[plugin.Name]))
	}
	return options
}
