// Package v1beta1 has the type Placement of group
// cluster.open-cluster-management.io: which managed clusters a workload goes to.
//
// It reads and writes the documents of Open Cluster Management's Placement, of
// which it is a superset: a prioritizer can also be given by its name alone, as
// it was in version v1alpha1, and the API server refuses more of what cannot be
// meant. What is the same is taken from Open Cluster Management's own package.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// GroupVersion of the types.
var GroupVersion = schema.GroupVersion{Group: clusterv1beta1.GroupName, Version: "v1beta1"}

// Kind of the type.
const Kind = "Placement"

// Prioritizer is the name of a score that needs nothing but the managed clusters
// and the decisions there are. Every score is in [-100, 100].
//
// +kubebuilder:validation:Enum=Balance;Steady;ResourceRatioCPU;ResourceRatioMemory;ResourceAllocatableCPU;ResourceAllocatableMemory
type Prioritizer string

const (
	// Balance prefers clusters with few decisions of other placements.
	Balance Prioritizer = "Balance"
	// Steady prefers clusters that are already chosen.
	Steady Prioritizer = "Steady"
	// ResourceRatioCPU prefers clusters with much of their CPU allocatable.
	ResourceRatioCPU Prioritizer = "ResourceRatioCPU"
	// ResourceRatioMemory prefers clusters with much of their memory allocatable.
	ResourceRatioMemory Prioritizer = "ResourceRatioMemory"
	// ResourceAllocatableCPU prefers clusters with much CPU allocatable.
	ResourceAllocatableCPU Prioritizer = "ResourceAllocatableCPU"
	// ResourceAllocatableMemory prefers clusters with much memory allocatable.
	ResourceAllocatableMemory Prioritizer = "ResourceAllocatableMemory"
)

// prioritizers has all names, in the order of error messages.
var prioritizers = []Prioritizer{Balance, Steady, ResourceRatioCPU, ResourceRatioMemory, ResourceAllocatableCPU, ResourceAllocatableMemory}

// Mode says what becomes of prioritizers that a policy does not list. The empty
// one is Additive.
//
// +kubebuilder:validation:Enum=Additive;Exact;""
type Mode string

const (
	// Additive: those that are not listed keep their default weight, which is 1 for
	// Balance and Steady and 0 for the others.
	Additive Mode = "Additive"
	// Exact: those that are not listed do not count.
	Exact Mode = "Exact"
)

// ScoreType is where a score comes from.
//
// +kubebuilder:validation:Enum=BuiltIn;AddOn
type ScoreType string

const (
	// BuiltIn: from a Prioritizer.
	BuiltIn ScoreType = "BuiltIn"
	// AddOn: from an AddOnPlacementScore in the namespace of the cluster.
	AddOn ScoreType = "AddOn"
)

// Placement chooses managed clusters for a workload, out of the cluster sets that
// are bound to its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].reason`
// +kubebuilder:printcolumn:name="SelectedClusters",type=integer,JSONPath=`.status.numberOfSelectedClusters`
type Placement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec PlacementSpec `json:"spec"`
	// Status is what there is; the decisions are in PlacementDecisions.
	//
	// +optional
	Status clusterv1beta1.PlacementStatus `json:"status,omitzero"`
}

// PlacementSpec is what is wanted. An empty one chooses all clusters of the
// cluster sets that are bound to the namespace.
//
// The lists that are bounded are so for the sake of the rules about them, whose
// cost the API server wants bounded.
type PlacementSpec struct {
	// ClusterSets are the names of cluster sets to choose from, of those bound to
	// the namespace; all of those if left out.
	//
	// +optional
	ClusterSets []string `json:"clusterSets,omitempty"`
	// NumberOfClusters is how many clusters to choose, at least 0, which chooses
	// none; all that qualify if left out. If fewer qualify, they are all chosen, and
	// the condition PlacementSatisfied is false.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// Predicates are conditions of which a cluster has to meet one; any cluster
	// qualifies if left out.
	//
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Predicates []clusterv1beta1.ClusterPredicate `json:"predicates,omitempty"`
	// PrioritizerPolicy says which of the clusters that qualify come first.
	//
	// +optional
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy,omitzero"`
	// SpreadPolicy says how the chosen clusters spread over regions and the like.
	//
	// +optional
	SpreadPolicy clusterv1beta1.SpreadPolicy `json:"spreadPolicy,omitzero"`
	// Tolerations of taints of clusters; a cluster with another taint is not chosen.
	// Seconds count from the time the taint was added, and are in [0, 3153600000],
	// the latter being 100 years.
	//
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:XValidation:rule="!has(self.tolerationSeconds) || (self.tolerationSeconds >= 0 && self.tolerationSeconds <= 3153600000)",message="must be in [0, 3153600000], the latter being 100 years",fieldPath=".tolerationSeconds"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator.size() == 0 || self.operator in ['Equal', 'Exists']",message="must be Equal or Exists",fieldPath=".operator"
	// +kubebuilder:validation:items:XValidation:rule="(has(self.key) && self.key.size() > 0) || (has(self.operator) && self.operator == 'Exists')",message="must be Exists where key is empty",fieldPath=".operator"
	// +optional
	Tolerations []clusterv1beta1.Toleration `json:"tolerations,omitempty"`
	// DecisionStrategy divides the decisions into groups. A group has at most
	// groupStrategy.clustersPerDecisionGroup clusters: a number of at least 1 or a
	// percentage from 1% to 100% of the chosen ones; all of them if it is left out, or
	// 0, which is what clients written in Go send where they leave it out.
	//
	// +kubebuilder:validation:XValidation:rule="!has(self.groupStrategy) || !has(self.groupStrategy.clustersPerDecisionGroup) || (type(self.groupStrategy.clustersPerDecisionGroup) == string ? self.groupStrategy.clustersPerDecisionGroup.endsWith('%') : self.groupStrategy.clustersPerDecisionGroup >= 0)",message="must be a number of clusters, at least 1 and not in quotes, or a percentage from 1% to 100%",fieldPath=".groupStrategy.clustersPerDecisionGroup"
	// +optional
	DecisionStrategy clusterv1beta1.DecisionStrategy `json:"decisionStrategy,omitzero"`
	// SortBy is the order of the decisions: ClusterName, or Score, the highest first
	// and by name where it is the same; ClusterName if left out.
	//
	// +kubebuilder:default=ClusterName
	// +optional
	SortBy clusterv1beta1.PlacementSortByType `json:"sortBy,omitempty"`
	// ScoreRateLimit is how long a change of scores alone, which chooses no other
	// cluster, may wait until the decisions show it: a number and h, m or s; 1m if
	// left out.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]+[hms]$`
	// +kubebuilder:default="1m"
	// +optional
	ScoreRateLimit string `json:"scoreRateLimit,omitempty"`
}

// PrioritizerPolicy says which clusters come first: those with the highest sum of
// weight times score.
type PrioritizerPolicy struct {
	// Mode says what becomes of prioritizers that are not listed. In mode Additive
	// they keep their default weight, which is 1 for Balance and Steady and 0 for the
	// others; in mode Exact they do not count. Additive if left out.
	//
	// +kubebuilder:default=Additive
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// Configurations are the prioritizers and their weights, each prioritizer at most
	// once.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="['Balance', 'Steady', 'ResourceRatioCPU', 'ResourceRatioMemory', 'ResourceAllocatableCPU', 'ResourceAllocatableMemory'].all(n, self.filter(c, (has(c.name) && c.name == n) || (has(c.scoreCoordinate) && c.scoreCoordinate.type == 'BuiltIn' && has(c.scoreCoordinate.builtIn) && c.scoreCoordinate.builtIn == n)).size() <= 1)",message="must not have the same prioritizer twice, by its name or by its scoreCoordinate"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.scoreCoordinate) || a.scoreCoordinate.type != 'AddOn' || !has(a.scoreCoordinate.addOn) || self.exists_one(b, has(b.scoreCoordinate) && b.scoreCoordinate.type == 'AddOn' && has(b.scoreCoordinate.addOn) && b.scoreCoordinate.addOn.resourceName == a.scoreCoordinate.addOn.resourceName && b.scoreCoordinate.addOn.scoreName == a.scoreCoordinate.addOn.scoreName))",message="must not have the same score of an add-on twice"
	// +optional
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerConfig is a prioritizer and its weight.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.scoreCoordinate)",message="must have exactly one of name and scoreCoordinate"
type PrioritizerConfig struct {
	// Name of a prioritizer. It is short for a scoreCoordinate of type BuiltIn with
	// this name as its builtIn. Exactly one of name and scoreCoordinate is to be
	// given.
	//
	// +optional
	Name Prioritizer `json:"name,omitempty"`
	// ScoreCoordinate is where the score comes from. Exactly one of name and
	// scoreCoordinate is to be given.
	//
	// +optional
	ScoreCoordinate *ScoreCoordinate `json:"scoreCoordinate,omitempty"`
	// Weight of the score, in [-10, 10], in all versions. 0 turns the prioritizer
	// off, a negative one prefers the clusters with the lowest score; 1 if left out.
	//
	// +kubebuilder:validation:Minimum=-10
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:default=1
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// ScoreCoordinate is where a score comes from.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'BuiltIn' || has(self.builtIn)",message="must be given where type is BuiltIn: Balance, Steady, ResourceRatioCPU, ResourceRatioMemory, ResourceAllocatableCPU or ResourceAllocatableMemory",fieldPath=".builtIn",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'AddOn' || has(self.addOn)",message="must be given where type is AddOn, with resourceName and scoreName",fieldPath=".addOn",reason=FieldValueRequired
type ScoreCoordinate struct {
	// Type is BuiltIn or AddOn; BuiltIn if left out.
	//
	// +kubebuilder:default=BuiltIn
	// +required
	Type ScoreType `json:"type,omitempty"`
	// BuiltIn is the name of a prioritizer; used where type is BuiltIn.
	//
	// +optional
	BuiltIn Prioritizer `json:"builtIn,omitempty"`
	// AddOn names a score of an AddOnPlacementScore; used where type is AddOn.
	//
	// +optional
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// AddOnScore names a score of an AddOnPlacementScore.
type AddOnScore struct {
	// ResourceName is the name of the AddOnPlacementScore in the namespace of the
	// cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ResourceName string `json:"resourceName"`
	// ScoreName is the name of the score in it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ScoreName string `json:"scoreName"`
}

// PlacementList is a list of them.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
