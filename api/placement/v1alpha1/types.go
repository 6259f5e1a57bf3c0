// Package v1alpha1 contains version v1alpha1 of the Placement API, group
// cluster.open-cluster-management.io. The schema is the same as in v1beta1: an object
// written in one version can be read in the other.
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

// GroupVersion is the API group and version of the types.
var GroupVersion = schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: "v1alpha1"}

// AddToScheme adds the types to the scheme. It does not conflict with Open Cluster
// Management's function for this version, which adds other types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Placement{}, &PlacementList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Placement selects managed clusters for a workload from the cluster sets that
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
	// Spec is the desired selection of clusters.
	Spec v1beta1.PlacementSpec `json:"spec"`
	// Status is the observed state. The selected clusters are listed in PlacementDecisions.
	//
	// +optional
	Status clusterv1beta1.PlacementStatus `json:"status,omitzero"`
}

// PlacementList is a list of Placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
