package fleet

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// decisionOf returns a PlacementDecision of a placement in namespace ns.
func decisionOf(placement, name string, clusters ...string) *clusterv1beta1.PlacementDecision {
	object := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if placement != "" {
		object.Labels = map[string]string{clusterv1beta1.PlacementLabel: placement}
	}
	for _, cluster := range clusters {
		object.Status.Decisions = append(object.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	return object
}

// State counts the decisions of all placements but decides only the placements with an object.
func TestObjectsState(t *testing.T) {
	ours := newPlacement(t, "p", "")
	ours.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied, ObservedGeneration: 3}}
	objects := &Objects{
		Clusters:   []*clusterv1.ManagedCluster{managed("a", "set=web"), managed("b", "set=web")},
		Sets:       []*clusterv1beta2.ManagedClusterSet{bySet("web")},
		Bindings:   []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", "web")},
		Placements: []*v1beta1.Placement{ours},
		Decisions: []*clusterv1beta1.PlacementDecision{
			decisionOf("p", "p-1", "b", ""), decisionOf("p", "p-2", "a", "b"), decisionOf("q", "q-1", "b"),
			decisionOf("unknown", "unknown-1", "b"), decisionOf("", "unlabeled", "a"),
		},
	}
	s := objects.State()
	if got, want := s.Placements(), []types.NamespacedName{keyOf("p")}; !slices.Equal(got, want) {
		t.Errorf("Placements() = %v, want %v", got, want)
	}
	// a: p; b: p, q and unknown.
	if got, want := fmt.Sprint(s.counts), "[1 3]"; got != want {
		t.Errorf("decisions per cluster %s, want %s", got, want)
	}
	if got := s.placements[keyOf("p")].decidedGeneration; got != 3 {
		t.Errorf("decisions of p have generation %d, want 3", got)
	}
}

// TestStaleDecisions checks that a PlacementDecision of a deleted placement is neither a decision nor a promise of a new placement of its
// name, whether it is read at the start or the placement is replaced later.
func TestStaleDecisions(t *testing.T) {
	placement := withWorkload(t, "web", 1, 8, "{}")
	placement.UID = "new"
	decision := decisionOf("web", "web-decision-1", "a")
	decision.Annotations = map[string]string{v1beta1.AnnotationReplicas: fmt.Sprintf(`{"a": {"replicas": 8, "since": %d}}`, now.Unix())}
	for uid, want := range map[types.UID]int{"new": 1, "old": 0} {
		decision.OwnerReferences = []metav1.OwnerReference{{Kind: v1beta1.Kind, Name: "web", UID: uid, Controller: new(true)}}
		objects, err := Read(func(list ObjectList) error {
			switch list := list.(type) {
			case *v1beta1.PlacementList:
				list.Items = []v1beta1.Placement{*placement}
			case *clusterv1beta1.PlacementDecisionList:
				list.Items = []clusterv1beta1.PlacementDecision{*decision}
			}
			return nil
		})
		must.Succeed(t, err)
		s := objects.State()
		p := s.placements[keyOf("web")]
		if got := [2]int{len(p.selected), len(p.workload.promises)}; got != [2]int{want, want} {
			t.Errorf("decisions of %s: %d selected clusters and %d promises, want %d", uid, got[0], got[1], want)
		}
		replaced := placement.DeepCopy()
		replaced.UID = "third"
		s.SetWorkload(replaced, nil, nil)
		if got := [2]int{len(p.selected), len(p.workload.promises)}; got != [2]int{} {
			t.Errorf("the replaced placement has %d selected clusters and %d promises", got[0], got[1])
		}
	}
}

// Read leaves out ClusterCapacities that are not named plimsoll: they are not about the cluster of their namespace.
func TestReadCapacities(t *testing.T) {
	objects, err := Read(func(list ObjectList) error {
		if capacities, ok := list.(*ClusterCapacityList); ok {
			capacities.Items = []ClusterCapacity{*capacityOf(t, "a", now, 10, nil), {
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "plimsoll-backup"}, Err: errors.New("metadata.name"),
			}}
		}
		return nil
	})
	must.Succeed(t, err)
	if e := objects.State().entries["a"]; e.capacity.Err != nil {
		t.Errorf("the capacity of a is replaced by an object with another name: %v", e.capacity.Err)
	}
}
