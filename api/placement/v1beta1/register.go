package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// AddToScheme registers the types of this version of the group: Placement, and
// Open Cluster Management's own PlacementDecision. It takes the place of that
// project's function for this version, which would register another Placement;
// a scheme cannot have both.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Placement{}, &PlacementList{},
		&clusterv1beta1.PlacementDecision{}, &clusterv1beta1.PlacementDecisionList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
