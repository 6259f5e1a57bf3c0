package fleet

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Objects are the objects of a hub that decisions depend on.
type Objects struct {
	Clusters   []*clusterv1.ManagedCluster
	Sets       []*clusterv1beta2.ManagedClusterSet
	Bindings   []*clusterv1beta2.ManagedClusterSetBinding
	Scores     []*clusterv1alpha1.AddOnPlacementScore
	Placements []*v1beta1.Placement
	Decisions  []*clusterv1beta1.PlacementDecision
	Capacities []*ClusterCapacity
	// Workloads are the objects that the workloads of placements refer to.
	Workloads []*unstructured.Unstructured
}

// ObjectList is a list of objects of the API.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// Read returns the objects of a hub. list fills a list with all objects of its kind. The hub may lack the kind ClusterCapacity.
func Read(list func(ObjectList) error) (*Objects, error) {
	var clusters ManagedClusterList
	var sets clusterv1beta2.ManagedClusterSetList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var scores clusterv1alpha1.AddOnPlacementScoreList
	var placements v1beta1.PlacementList
	var decisions clusterv1beta1.PlacementDecisionList
	for _, l := range []ObjectList{&clusters, &sets, &bindings, &scores, &placements, &decisions} {
		if err := list(l); err != nil {
			return nil, err
		}
	}
	var capacities ClusterCapacityList
	if err := list(&capacities); err != nil && !resources.IsNotServed(err) {
		return nil, err
	}
	managed := make([]*clusterv1.ManagedCluster, len(clusters.Items))
	for i := range clusters.Items {
		managed[i] = &clusters.Items[i].ManagedCluster
	}
	// The API permits further ClusterCapacities in the namespace of a cluster: they are not about it.
	named := slices.DeleteFunc(capacities.Items, func(c ClusterCapacity) bool { return c.Name != capacityv1alpha1.Name })
	uids := map[string]types.UID{}
	for i := range placements.Items {
		uids[placements.Items[i].Namespace+"/"+placements.Items[i].Name] = placements.Items[i].UID
	}
	return &Objects{
		Clusters: managed, Sets: pointers(sets.Items), Bindings: pointers(bindings.Items),
		Scores: pointers(scores.Items), Placements: pointers(placements.Items),
		Decisions: slices.DeleteFunc(pointers(decisions.Items), func(d *clusterv1beta1.PlacementDecision) bool {
			return IsStale(d, uids[d.Namespace+"/"+d.Labels[clusterv1beta1.PlacementLabel]])
		}),
		Capacities: pointers(named),
	}, nil
}

// IsStale reports whether a PlacementDecision belongs to a deleted placement, in place of which one with another UID exists now.
func IsStale(d *clusterv1beta1.PlacementDecision, uid types.UID) bool {
	owner := metav1.GetControllerOf(d)
	return uid != "" && owner != nil && owner.Kind == v1beta1.Kind && owner.Name == d.Labels[clusterv1beta1.PlacementLabel] &&
		owner.UID != uid
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// State returns the state of the hub with these objects. Placements with decisions but without an object are decided
// by another controller.
func (o *Objects) State() *State {
	s := NewState()
	setAll(o.Scores, s.SetScores)
	setAll(o.Clusters, s.SetCluster)
	setAll(o.Sets, s.SetClusterSet)
	setAll(o.Bindings, s.SetBinding)
	setAll(o.Capacities, s.SetCapacity)
	selected, promises := o.Selected(), o.Promises()
	for _, object := range o.Placements {
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		s.SetWorkload(o.workloadOf(object))
		s.RestorePromises(key, promises[key])
		s.AddPlacement(object, selected[key])
		delete(selected, key)
	}
	for key, clusters := range selected { // the order does not matter
		s.SetUnmanaged(key, clusters)
	}
	return s
}

// setAll calls a setter of a new state for each object. No placement is in the state yet that a change could affect.
func setAll[T any](objects []*T, set func(*T) []types.NamespacedName) {
	for _, object := range objects {
		set(object)
	}
}

// workloadOf returns a placement with the object that its workload refers to, nil if it refers to none, or with an error if the object
// is missing.
func (o *Objects) workloadOf(p *v1beta1.Placement) (*v1beta1.Placement, *unstructured.Unstructured, error) {
	ref := ReferenceOf(p)
	if ref == nil {
		return p, nil, nil
	}
	for _, object := range o.Workloads {
		if object.GetKind() == ref.GetKind() && object.GetNamespace() == ref.GetNamespace() && object.GetName() == ref.GetName() {
			return p, object, nil
		}
	}
	return p, nil, fmt.Errorf("there is no %s %s in namespace %s", ref.GetKind(), ref.GetName(), ref.GetNamespace())
}

// Promises returns the promises in the decisions of each placement, for the clusters in them. A text that cannot be decoded is no promise.
func (o *Objects) Promises() map[types.NamespacedName]map[string]podPromise {
	out := map[types.NamespacedName]map[string]podPromise{}
	for _, decision := range o.Decisions {
		var all map[string]podPromise
		if json.Unmarshal([]byte(decision.Annotations[v1beta1.AnnotationReplicas]), &all) != nil {
			continue
		}
		key := types.NamespacedName{Namespace: decision.Namespace, Name: decision.Labels[clusterv1beta1.PlacementLabel]}
		if out[key] == nil {
			out[key] = map[string]podPromise{}
		}
		for _, cluster := range clustersIn(decision) {
			if p, known := all[cluster]; known && fit.CheckReplicas(p.Replicas) == nil && p.Waiting >= 0 && p.Waiting <= p.Replicas {
				out[key][cluster] = p
			}
		}
	}
	return out
}

// Selected returns the names of the clusters in the decisions of each placement,
// sorted.
func (o *Objects) Selected() map[types.NamespacedName][]string {
	selected := map[types.NamespacedName][]string{}
	for _, decision := range o.Decisions {
		if name := decision.Labels[clusterv1beta1.PlacementLabel]; name != "" {
			key := types.NamespacedName{Namespace: decision.Namespace, Name: name}
			selected[key] = append(selected[key], clustersIn(decision)...)
		}
	}
	for key, clusters := range selected {
		selected[key] = sorted(clusters)
	}
	return selected
}

// ClustersIn returns the names of the clusters in PlacementDecisions.
func ClustersIn(decisions []clusterv1beta1.PlacementDecision) (clusters []string) {
	for i := range decisions {
		clusters = append(clusters, clustersIn(&decisions[i])...)
	}
	return clusters
}

func clustersIn(decision *clusterv1beta1.PlacementDecision) (clusters []string) {
	for _, d := range decision.Status.Decisions {
		if d.ClusterName != "" {
			clusters = append(clusters, d.ClusterName)
		}
	}
	return clusters
}
