// Package plugins puts Plimsoll's scheduler plugins together, for a
// kube-scheduler to be built with them:
//
//	command := app.NewSchedulerCommand(plugins.Options()...)
//
// Each plugin can also be used alone, from its own package.
package plugins

import (
	"context"
	"sync"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/nodemetrics"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourcesallocatable"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourceslimits"
)

// Names of the plugins, in the order of the documentation.
var Names = []string{noderesourcesallocatable.Name, noderesourceslimits.Name, lowriskovercommitment.Name}

// Registry returns the constructors of all plugins. Plugins made by them share
// the sums per node and the reading of load: a registry is for one scheduler.
func Registry() runtime.Registry {
	registry := registry(lowriskovercommitment.NewStores())
	for name, factory := range registry {
		registry[name] = watched(factory)
	}
	return registry
}

// RegistryWithLoad returns the same with load from stores that make makes, given
// how old load may be, in place of the sources that the plugins' arguments name.
func RegistryWithLoad(make func(maxAge time.Duration) (*load.Store, error)) runtime.Registry {
	return registry(lowriskovercommitment.StoresMadeBy(make))
}

func registry(stores *lowriskovercommitment.Stores) runtime.Registry {
	cache := noderes.NewCache()
	return runtime.Registry{
		noderesourcesallocatable.Name: noderesourcesallocatable.New,
		noderesourceslimits.Name:      noderesourceslimits.NewShared(cache),
		lowriskovercommitment.Name:    lowriskovercommitment.NewShared(cache, stores),
	}
}

// watched returns a constructor whose plugins' nodes are in the metrics of the
// process.
func watched(factory runtime.PluginFactory) runtime.PluginFactory {
	return func(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := factory(ctx, args, handle)
		if informers := handle.SharedInformerFactory(); err == nil && informers != nil {
			judge, _ := plugin.(nodemetrics.Judge)
			collector().Watch(ctx, informers, handle.ProfileName(), judge)
		}
		return plugin, err
	}
}

// collector has the metrics of the nodes, among those of the scheduler.
var collector = sync.OnceValue(func() *nodemetrics.Collector {
	c := &nodemetrics.Collector{}
	legacyregistry.RawMustRegister(c)
	return c
})

// Options returns the plugins as options of kube-scheduler's command.
func Options() []app.Option {
	registry := Registry()
	options := make([]app.Option, 0, len(Names))
	for _, name := range Names {
		options = append(options, app.WithPlugin(name, registry[name]))
	}
	return options
}
