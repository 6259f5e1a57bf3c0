// Package engine runs the code of kube-scheduler, with its plugins and Plimsoll's plugins, over
// given nodes and pods. It neither reads from an API server nor binds pods.
//
// # Explanations
//
// State evaluates all nodes for one pod, and explains which node its scheduler selects. The
// command line and the live page of the demo both use it.
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
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/plugins"
)

// Cluster is the initial state. The engine does not change the objects, and they must
// not change while the engine is used.
type Cluster struct {
	Nodes []*v1.Node
	// Running are the pods with a node.
	Running []*v1.Pod
	// Nominated are the pods that wait for a node on which pods of lower priority were preempted for them.
	Nominated []*v1.Pod
	// References are the objects that pods refer to: claims, volumes, classes,
	// namespaces, and the ReplicaSets and StatefulSets that own them.
	References []runtime.Object
}

// Options configure an engine.
type Options struct {
	// Config is the configuration of the scheduler, with defaults.
	Config *internalconfig.KubeSchedulerConfiguration
	// Load of the nodes, nil if unknown.
	Load *load.Reading
	// Usage of the pods, nil if unknown.
	Usage *load.PodReading
	// Clock returns the time at which the age of the load is computed, time.Now if nil. It is called by the goroutine that
	// uses the engine.
	Clock func() time.Time
	// ExtraPlugins are plugins in addition to the plugins of Kubernetes and Plimsoll. They find the load of the
	// engine with the handle, as Plimsoll's plugins do.
	ExtraPlugins frameworkruntime.Registry
	// History is what an earlier scheduler has learned about workloads, as Engine.History returns it.
	History []predict.Past
	// Batches lets kube-scheduler schedule equal pods in batches, if the profile allows it. A batch ends by the clock
	// of the machine, so that results may differ from run to run.
	Batches bool
}

// registered are the plugins that Register added.
var registered = frameworkruntime.Registry{}

// Register adds plugins to all engines of the process, for programs that compare further plugins. It must be called
// before the first engine is created. Registering a name twice is an error.
func Register(extra frameworkruntime.Registry) error { return registered.Merge(extra) }

// Engine is a scheduler over a cluster that changes only through the engine's methods.
// It must be used by one goroutine only.
type Engine struct {
	scheduler *scheduler.Scheduler
	snapshot  *internalcache.Snapshot
	now       func() time.Time
	// stores from which the profiles read load, and podStores from which they read the usage of pods.
	stores    []*load.Store
	podStores []*load.PodStore
	// position of each node in the order in which nodes were added for the first time.
	position map[string]int
	// explainers are the plugins that explain their scores, by profile and name.
	explainers map[string]map[string]explainer
	// learner learns the usage of workloads, nil if no plugin does.
	learner prediction.Learner
	// queue counts scheduling cycles, nil without batches.
	queue *countingQueue
}

// countingQueue is a scheduling queue that counts scheduling cycles itself: the original counts pods that are taken
// from the queue, and the engine takes none.
type countingQueue struct {
	internalqueue.SchedulingQueue
	cycles int64
}

// SchedulingCycle returns the number of the scheduling cycle.
func (q *countingQueue) SchedulingCycle() int64 { return q.cycles }

// explainer is a score plugin that explains its scores.
type explainer interface {
	// ExplainPod returns the plugin's expectation of a pod, ExplainNode the reason for the score of a node.
	ExplainPod(state fwk.CycleState, pod *v1.Pod) string
	ExplainNode(state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) string
}

// New returns an engine. Its goroutines end when ctx is canceled.
func New(ctx context.Context, cluster Cluster, options Options) (*Engine, error) {
	ctx = klog.NewContext(ctx, klog.NewKlogr().V(1))
	client := fake.NewClientset(append(missingNamespaces(cluster), versioned(cluster.References)...)...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := internalcache.NewEmptySnapshot()
	if options.Clock == nil {
		options.Clock = time.Now
	}
	e := &Engine{
		snapshot: snapshot, now: options.Clock, position: make(map[string]int, len(cluster.Nodes)),
		explainers: map[string]map[string]explainer{},
	}
	registry := e.remember(plugins.RegistryWithLoad(e.newStore, e.newPodStore, registered, options.ExtraPlugins))
	sched, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return events.NewFakeRecorder(0) },
		scheduler.WithProfiles(withIgnored(options.Config)...),
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
			return nil, fmt.Errorf("syncing objects of type %s: %w", kind, context.Cause(ctx))
		}
	}
	logger := klog.FromContext(ctx)
	e.scheduler = sched
	if options.Batches {
		e.queue = &countingQueue{SchedulingQueue: sched.SchedulingQueue}
		sched.SchedulingQueue = e.queue
	}
	if err := e.waitForDevices(ctx, cluster.References); err != nil {
		return nil, err
	}
	for _, pod := range cluster.Nominated {
		if err := factory.Core().V1().Pods().Informer().GetIndexer().Add(pod); err != nil {
			return nil, err
		}
		sched.SchedulingQueue.Add(ctx, pod)
	}
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
	return e, e.applyKnown(ctx, &options)
}

// applyKnown gives the plugins what is known of the past, of the usage of pods and of the load of nodes.
func (e *Engine) applyKnown(ctx context.Context, options *Options) error {
	if e.learner != nil && len(options.History) > 0 { // pods that run are taken as known in a history
		e.learner.Restore(options.History, e.now(), e.now())
	}
	if options.Usage != nil { // plugins learn the usage of the snapshot's pods from it and from the load
		if err := e.SetPodUsage(ctx, *options.Usage); err != nil {
			return err
		}
	}
	if options.Load != nil {
		return e.SetLoad(*options.Load)
	}
	return nil
}

// remember returns a registry whose plugins are added to the explainers if they explain their scores.
func (e *Engine) remember(registry frameworkruntime.Registry) frameworkruntime.Registry {
	remembering := frameworkruntime.Registry{}
	for name, factory := range registry {
		remembering[name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, h)
			if learns, ok := plugin.(interface{ Learner() prediction.Learner }); ok {
				e.learner = learns.Learner()
			}
			if explains, ok := plugin.(explainer); ok {
				profile := h.ProfileName()
				if e.explainers[profile] == nil {
					e.explainers[profile] = map[string]explainer{}
				}
				e.explainers[profile][name] = explains
			}
			return plugin, err
		}
	}
	return remembering
}

// History returns what the scheduler has learned about the usage of workloads, nil if it learns nothing.
func (e *Engine) History() []predict.Past {
	if e.learner == nil {
		return nil
	}
	return e.learner.Workloads()
}

// newStore creates a store of load.
func (e *Engine) newStore(maxAge time.Duration) (*load.Store, error) {
	store := load.NewStore(maxAge, e.now)
	e.stores = append(e.stores, store)
	return store, nil
}

// newPodStore creates a store of the usage of pods.
func (e *Engine) newPodStore(maxAge time.Duration) (*load.PodStore, error) {
	store := load.NewPodStore(maxAge, e.now)
	e.podStores = append(e.podStores, store)
	return store, nil
}

// missingNamespaces returns the namespaces of pods that the references lack.
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
		namespaces = append(namespaces, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1.LabelMetadataName: name}, // as the API server sets it
		}})
	}
	return namespaces
}

// profile returns the profile with the given scheduler name. If the name is empty, it returns the
// only profile, or the profile that the pod's spec names.
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
		return nil, fmt.Errorf(
			"no profile for scheduler name %q: must be one of %s; keep one profile, which takes all pods, or add one of this name",
			name,
			strings.Join(slices.Sorted(maps.Keys(e.scheduler.Profiles)), ", "),
		)
	}
	return profile, nil
}
