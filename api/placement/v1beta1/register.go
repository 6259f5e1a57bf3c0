package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// AddToScheme registers the types of this version of the group: Placement, and
// PlacementDecision of Open Cluster Management. Use it instead of the function of Open
// Cluster Management, which registers another type for Placement.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Placement{}, &PlacementList{},
		&clusterv1beta1.PlacementDecision{}, &clusterv1beta1.PlacementDecisionList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
