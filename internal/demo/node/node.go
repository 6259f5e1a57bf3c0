// Package node is the demo of node scheduling: it runs small scenarios in a cluster with a real
// scheduler, each with the default profile and with a profile of the plugins.
package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// LoadSource is the source from which the scheduler reads load.
type LoadSource interface {
	// Set changes the reported load, nil for none, and returns when the scheduler uses the change.
	Set(ctx context.Context, load Measurements) error
	// Reading returns the load that the scheduler uses, the zero value if there is none.
	Reading(ctx context.Context) load.Reading
}

// asScheduled makes pods that are created on a node look as if a scheduler had bound them: recordings place such pods again.
var asScheduled = client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"managedFields": [{}]}}`))

// keptDecisions is the number of recent decisions that are kept.
const keptDecisions = 4

// Decision is the decision of the scheduler on a pod, and the scores of the nodes, computed by the
// what-if engine for the cluster just before the decision.
type Decision struct {
	Time    time.Time
	Profile string
	// Node is the selected node, empty if there is none.
	Node string
	// Default is the node that the default profile selects, empty if it is not known.
	Default string
	Scores  engine.PodScores
}

// Demo runs node scenarios in an environment.
type Demo struct {
	env  *demo.Environment
	load LoadSource

	mu        sync.Mutex
	decisions []Decision // newest first
}

// New returns the demo for an environment whose scheduler reads load from the source.
func New(env *demo.Environment, load LoadSource) *Demo { return &Demo{env: env, load: load} }

// Decisions returns the most recent decisions of the scheduler, newest first.
func (d *Demo) Decisions() []Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.decisions)
}

// add adds a decision.
func (d *Demo) add(decision Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decisions = slices.Insert(d.decisions, 0, decision)
	d.decisions = d.decisions[:min(len(d.decisions), keptDecisions)]
}

// Run clears the cluster and runs a scenario with one profile.
func (d *Demo) Run(ctx context.Context, s Scenario, profile string) ([]demo.Result, error) {
	err := d.env.Clear(ctx)
	var results []demo.Result
	if err == nil {
		results, err = d.run(ctx, s, profile)
	}
	if err != nil {
		return results, fmt.Errorf("profile %s: %w", profile, err)
	}
	return results, nil
}

func (d *Demo) run(ctx context.Context, s Scenario, profile string) ([]demo.Result, error) {
	for _, node := range s.Nodes {
		if err := d.env.API.Create(ctx, node.Object()); err != nil {
			return nil, err
		}
	}
	for _, pod := range s.Running {
		object := pod.Object(profile)
		if err := d.env.API.Create(ctx, object); err != nil {
			return nil, err
		}
		if err := d.env.API.Patch(ctx, object, asScheduled); err != nil {
			return nil, err
		}
	}
	var results []demo.Result
	for _, step := range s.Steps {
		if err := d.env.Settle(ctx); err != nil {
			return results, err
		}
		switch {
		case step.Create != nil:
			result, err := d.schedule(ctx, s, profile, *step.Create)
			if err != nil {
				return results, err
			}
			results = append(results, result)
		case step.Delete != "":
			if err := d.env.DeletePod(ctx, step.Delete); err != nil {
				return results, err
			}
		case profile == s.Profile: // Load or StopLoad
			if err := d.load.Set(ctx, step.measurements()); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// schedule creates a pod and waits until it is scheduled. It adds the decision, with the scores that
// the what-if engine has computed in advance.
func (d *Demo) schedule(ctx context.Context, s Scenario, profile string, a arrival) (demo.Result, error) {
	scores, err := d.predict(ctx, a.Object(profile))
	if err != nil {
		return demo.Result{}, err
	}
	if err := d.env.API.Create(ctx, a.Object(profile)); err != nil {
		return demo.Result{}, err
	}
	node, err := d.env.AwaitScheduled(ctx, a.Name)
	if err != nil {
		return demo.Result{}, err
	}
	decision := Decision{Time: time.Now(), Profile: profile, Scores: scores}
	if node != demo.Pending {
		decision.Node = node
	}
	d.add(decision)
	want := a.WantDefault
	if profile == s.Profile {
		want = a.Want
	}
	ok := node == want || want == demo.Any && node != demo.Pending
	return demo.Result{Scenario: s.Name, Profile: profile, Object: a.Name, Got: node, Want: want, OK: ok}, nil
}

// predict returns the scores of a pod in the present cluster, computed by the what-if engine as by
// plimsoll explain.
func (d *Demo) predict(ctx context.Context, pod *v1.Pod) (engine.PodScores, error) {
	read, err := record.ReadCluster(ctx, d.env.Access, record.ReadOptions{Areas: []string{kinds.AreaCluster}})
	if err != nil {
		return engine.PodScores{}, err
	}
	state := engine.State{}
	if state.Objects, err = read.Cluster(); err != nil {
		return engine.PodScores{}, err
	}
	if last := d.load.Reading(ctx); !last.Time.IsZero() {
		state.Load = &last
	}
	explanation, err := engine.Pod(ctx, state, engine.Scheduler{Config: d.env.Scheduler, Source: "the demo"}, pod)
	if err != nil {
		return engine.PodScores{}, err
	}
	return explanation.Scores, nil
}

// Watch replaces Decisions by the decisions on all pods that are bound from now on, until ctx ends. Their
// scores are computed for the cluster without the pod when the decision is processed. While many pods are
// bound at once, decisions are left out.
func (d *Demo) Watch(ctx context.Context) error {
	d.mu.Lock()
	d.decisions = nil
	d.mu.Unlock()
	factory := informers.NewSharedInformerFactory(d.env.Client, 0)
	bound := make(chan *v1.Pod, keptDecisions)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, pod := before.(*v1.Pod), after.(*v1.Pod)
			if old.Spec.NodeName != "" || pod.Spec.NodeName == "" {
				return
			}
			select {
			case bound <- pod:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		defer factory.Shutdown()
		for {
			select {
			case pod := <-bound:
				d.addDecision(ctx, pod)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// addDecision adds the decision on a bound pod.
func (d *Demo) addDecision(ctx context.Context, pod *v1.Pod) {
	unbound := pod.DeepCopy()
	unbound.Spec.NodeName = ""
	scores, err := d.predict(ctx, unbound)
	if err != nil {
		return
	}
	decision := Decision{Time: time.Now(), Profile: pod.Spec.SchedulerName, Node: pod.Spec.NodeName, Scores: scores}
	if decision.Profile != demo.DefaultProfile {
		unbound.Spec.SchedulerName = demo.DefaultProfile
		if byDefault, err := d.predict(ctx, unbound); err == nil {
			decision.Default = cmp.Or(byDefault.Selected, "no node")
		}
	}
	d.add(decision)
}
