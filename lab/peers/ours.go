package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
	"github.com/plimsoll-k8s/plimsoll/plugins"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// serveOurs measures the cases that the standard input names, with the code of this project. Its
// arguments are the file with the workload and the address of a load watcher.
func serveOurs(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("ours: found %d arguments: must be the file with the workload and the address of a load watcher", len(args)-1)
	}
	w, err := readWorkload(args[1])
	if err != nil {
		return err
	}
	operations := map[string]operation{}
	if err := addScores(ctx, w, args[2], operations); err != nil {
		return err
	}
	if err := addPlacements(w, operations); err != nil {
		return err
	}
	return serve(os.Stdin, os.Stdout, operations)
}

// addScores adds a case for each plugin and number of pods: the score of one node. The arguments are the
// defaults of the plugins.
func addScores(ctx context.Context, w *workload, watcher string, operations map[string]operation) error {
	for _, plugin := range []schedtest.Plugin{
		{Name: "LowRiskOverCommitment", Args: &config.LowRiskOverCommitmentArgs{WatcherAddress: watcher}},
		{Name: "NodeResourcesAllocatable"},
	} {
		for pods, n := range w.Nodes {
			s, err := schedtest.New(ctx, plugins.Registry(), plugin, schedtest.Cluster{Nodes: []*v1.Node{n.Node}, Pods: n.Pods})
			if err != nil {
				return fmt.Errorf("%s: %w", plugin.Name, err)
			}
			operations["score/"+plugin.Name+"/"+pods] = scoreOf(ctx, s, w.Pod)
		}
	}
	return nil
}

// scoreOf returns the operation that scores the only node for a pod. PreScore has been called without the node, so that Score
// computes the values that it would look up in a scheduler.
func scoreOf(ctx context.Context, s *schedtest.Scheduler, pod *v1.Pod) operation {
	plugin, node, state := s.Plugin.(fwk.ScorePlugin), s.Nodes[0], framework.NewCycleState()
	if pre, ok := s.Plugin.(fwk.PreScorePlugin); ok {
		pre.PreScore(ctx, state, pod, nil)
	}
	return func() error {
		_, status := plugin.Score(ctx, state, pod, node)
		return status.AsError()
	}
}

// addPlacements adds cases for each placement. place/NAME is the algorithm, decide/NAME the whole decision of the
// controller, and new/cel the decision for a placement whose expression is new.
func addPlacements(w *workload, operations map[string]operation) error {
	if err := expression.Prepare(); err != nil {
		return err
	}
	state := fleet.NewState()
	for _, object := range w.Clusters {
		state.SetCluster(object)
	}
	state.SetClusterSet(&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}}
	binding.Spec.ClusterSet = "all"
	state.SetBinding(binding)
	existing := map[string][]string{}
	for _, decision := range w.Decisions {
		name := decision.Labels[clusterv1beta1.PlacementLabel]
		existing[name] = fleet.ClustersIn([]clusterv1beta1.PlacementDecision{*decision})
		if w.Placements[name] == nil {
			state.SetUnmanaged(types.NamespacedName{Namespace: namespace, Name: name}, existing[name])
		}
	}
	for name, theirs := range w.Placements {
		object, err := convert(theirs)
		if err != nil {
			return err
		}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		state.AddPlacement(object, existing[name])
		operations["decide/"+name] = func() error { return decideOnce(state, key) }
		if name == "cel" {
			generation := object.Generation
			operations["new/cel"] = func() error {
				changed := *object
				generation++
				changed.Generation = generation
				state.SetPlacement(&changed) // compiled again, and no outcome is known
				return decideOnce(state, key)
			}
			continue
		}
		result, ok := state.Preview(key, time.Now())
		if !ok {
			return fmt.Errorf("%s: the placement is not in the state", name)
		}
		request := requestOf(result, existing, name)
		operations["place/"+name] = func() error {
			if len(decide.Decide(request).Chosen) != selected {
				return errShort
			}
			return nil
		}
	}
	return nil
}

// errShort is the error of a decision with too few clusters.
var errShort = errors.New("the decision has another number of clusters")

// decideOnce decides a placement.
func decideOnce(state *fleet.State, key types.NamespacedName) error {
	if r, ok := state.Decide(key, time.Now()); !ok || r.Selected() != selected {
		return errShort
	}
	return nil
}

// requestOf returns the same input of the algorithm for a placement as the controller does.
func requestOf(result *fleet.Result, existing map[string][]string, name string) *decide.Request {
	r := &decide.Request{
		Fleet: result.Fleet, Members: decide.Indexes(len(result.Fleet)), Number: selected, Now: time.Now().Unix(),
		Counts: make([]int32, len(result.Fleet)),
		Prioritizers: decide.EnabledPrioritizers(true, []decide.Prioritizer{
			{Kind: v1beta1.ResourceAllocatableCPU, Weight: 1}, {Kind: v1beta1.ResourceAllocatableMemory, Weight: 1},
		}),
	}
	if name == "label" {
		in, err := labels.NewRequirement("environment", selection.In, []string{"prod", "stage"})
		if err != nil {
			panic(err)
		}
		r.Predicates = []decide.Predicate{{Selector: decide.Selector{Labels: labels.NewSelector().Add(*in)}}}
	}
	index := map[string]int32{}
	for i, cluster := range result.Fleet {
		index[cluster.Name] = int32(i)
	}
	for owner, names := range existing {
		for _, cluster := range names {
			r.Counts[index[cluster]]++
			if owner == name {
				r.Chosen = append(r.Chosen, index[cluster])
			}
		}
	}
	return r
}

// convert returns a placement of Open Cluster Management as the type of this project.
func convert(in *clusterv1beta1.Placement) (*v1beta1.Placement, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	out := &v1beta1.Placement{}
	return out, json.Unmarshal(raw, out)
}
