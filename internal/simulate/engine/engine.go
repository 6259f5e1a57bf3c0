// Package engine answers what a scheduler would do, by asking the real one:
// the code of kube-scheduler, with all its plugins and ours, over nodes and
// pods that are given to it instead of watched. Nothing is bound and no API
// server is asked.
package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/plugins"
)

// Cluster is what the scheduler is to look at. Objects are not changed, and
// must not change while the engine is used.
type Cluster struct {
	Nodes []*v1.Node
	// Running pods have a node.
	Running []*v1.Pod
	// References are the objects that pods refer to: claims, volumes, classes,
	// namespaces.
	References []runtime.Object
}

// Options say how the scheduler is set up.
type Options struct {
	// Config is the scheduler's configuration, with defaults.
	Config *internalconfig.KubeSchedulerConfiguration
	// Load is what is known of the nodes' load, nil for nothing.
	Load *load.Reading
	// Now is the time that the age of the load is reckoned at; the present if
	// zero.
	Now time.Time
	// Clock tells the time in place of Now where it moves on. It is asked by the
	// goroutine that uses the engine.
	Clock func() time.Time
	// ExtraPlugins are plugins in addition to those of Kubernetes and Plimsoll.
	ExtraPlugins frameworkruntime.Registry
}

// Engine is a scheduler over a cluster that changes only by what the engine is
// told. It belongs to one goroutine.
type Engine struct {
	scheduler *scheduler.Scheduler
	snapshot  *internalcache.Snapshot
	now       func() time.Time
	// stores are what the profiles read load from.
	stores []*load.Store
	// position of each node in the cluster's list.
	position map[string]int
}

// New sets a scheduler up. It ends with ctx.
func New(ctx context.Context, cluster Cluster, options Options) (*Engine, error) {
	ctx = klog.NewContext(ctx, klog.NewKlogr().V(1))
	client := fake.NewClientset(append(missingNamespaces(cluster), cluster.References...)...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := internalcache.NewEmptySnapshot()
	e := &Engine{snapshot: snapshot, now: options.clock(), position: make(map[string]int, len(cluster.Nodes))}
	registry := plugins.RegistryWithLoad(func(maxAge time.Duration) (*load.Store, error) {
		store := load.NewStore(maxAge, e.now)
		e.stores = append(e.stores, store)
		if options.Load == nil {
			return store, nil
		}
		return store, store.Put(*options.Load)
	})
	if err := registry.Merge(options.ExtraPlugins); err != nil {
		return nil, err
	}
	sched, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return events.NewFakeRecorder(0) },
		scheduler.WithProfiles(options.Config.Profiles...),
		scheduler.WithComponentConfigVersion(options.Config.APIVersion),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithParallelism(options.Config.Parallelism),
		scheduler.WithPercentageOfNodesToScore(options.Config.PercentageOfNodesToScore),
		scheduler.WithNodeInfoSnapshot(snapshot),
	)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("reading the objects given of type %s: %w", kind, context.Cause(ctx))
		}
	}
	logger := klog.FromContext(ctx)
	e.scheduler = sched
	for _, node := range cluster.Nodes {
		e.AddNode(ctx, node)
	}
	for _, pod := range cluster.Running {
		if _, known := e.position[pod.Spec.NodeName]; !known {
			continue
		}
		if err := sched.Cache.AddPod(logger, pod); err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	if err := sched.Cache.UpdateSnapshot(logger, snapshot); err != nil {
		return nil, err
	}
	return e, nil
}

// clock returns what tells the time.
func (o Options) clock() func() time.Time {
	switch {
	case o.Clock != nil:
		return o.Clock
	case o.Now.IsZero():
		return time.Now
	}
	return func() time.Time { return o.Now }
}

// missingNamespaces returns the namespaces that pods are in and nobody gave.
func missingNamespaces(cluster Cluster) []runtime.Object {
	missing := map[string]bool{v1.NamespaceDefault: true}
	for _, pod := range cluster.Running {
		missing[pod.Namespace] = true
	}
	for _, obj := range cluster.References {
		if namespace, ok := obj.(*v1.Namespace); ok {
			delete(missing, namespace.Name)
		}
	}
	var namespaces []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		namespaces = append(namespaces, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return namespaces
}

// profile returns the profile for a pod: that of the name given, or else the
// only one there is, or else the one that the pod asks for.
func (e *Engine) profile(pod *v1.Pod, name string) (framework.Framework, error) {
	if name == "" {
		name = pod.Spec.SchedulerName
		if len(e.scheduler.Profiles) == 1 {
			for only := range e.scheduler.Profiles {
				name = only
			}
		}
	}
	profile, ok := e.scheduler.Profiles[name]
	if !ok {
		return nil, fmt.Errorf("no profile for scheduler name %q; there is %s",
			name, strings.Join(slices.Sorted(maps.Keys(e.scheduler.Profiles)), ", "))
	}
	return profile, nil
}
