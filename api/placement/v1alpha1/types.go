// Package v1alpha1 has the type Placement of group
// cluster.open-cluster-management.io in its older version, which is the same as
// v1beta1 in all but the name: an object can be written in one and read in the
// other.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// GroupVersion of the types.
var GroupVersion = schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: "v1alpha1"}

// AddToScheme registers the types. Open Cluster Management's function for this
// version registers others, so that a scheme can have both.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Placement{}, &PlacementList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Placement chooses managed clusters for a workload, out of the cluster sets that
// are bound to its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].reason`
// +kubebuilder:printcolumn:name="SelectedClusters",type=integer,JSONPath=`.status.numberOfSelectedClusters`
type Placement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec v1beta1.PlacementSpec `json:"spec"`
	// Status is what there is; the decisions are in PlacementDecisions.
	//
	// +optional
	Status clusterv1beta1.PlacementStatus `json:"status,omitzero"`
}

// PlacementList is a list of them.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
