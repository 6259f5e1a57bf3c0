// Package v1beta1 contains version v1beta1 of the Placement API, group
// cluster.open-cluster-management.io. A Placement selects managed clusters for a
// workload.
//
// The API is a superset of Open Cluster Management's Placement: it accepts the
// same documents, a prioritizer can also be given by its name alone, and the
// API server rejects more invalid values. Types that are identical are imported
// from Open Cluster Management's package. The CRD also serves version v1alpha1,
// which has the same schema and no Go types.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// GroupVersion is the API group and version of the types.
var GroupVersion = schema.GroupVersion{Group: clusterv1beta1.GroupName, Version: "v1beta1"}

// Kind is the kind of a Placement.
const Kind = "Placement"

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

// Prioritizer is the name of a built-in score. It is calculated from the managed
// clusters and the existing decisions. A score is in [-100, 100].
//
// +kubebuilder:validation:Enum=Balance;Steady;ResourceRatioCPU;ResourceRatioMemory;ResourceAllocatableCPU;ResourceAllocatableMemory;FitReplicas;FitWait;FitCost
type Prioritizer string

const (
	// Balance prefers clusters that few other placements have selected.
	Balance Prioritizer = "Balance"
	// Steady prefers clusters that the placement has already selected.
	Steady Prioritizer = "Steady"
	// ResourceRatioCPU prefers clusters with a high ratio of allocatable CPU to CPU capacity.
	ResourceRatioCPU Prioritizer = "ResourceRatioCPU"
	// ResourceRatioMemory prefers clusters with a high ratio of allocatable memory to memory capacity.
	ResourceRatioMemory Prioritizer = "ResourceRatioMemory"
	// ResourceAllocatableCPU prefers clusters with more allocatable CPU.
	ResourceAllocatableCPU Prioritizer = "ResourceAllocatableCPU"
	// ResourceAllocatableMemory prefers clusters with more allocatable memory.
	ResourceAllocatableMemory Prioritizer = "ResourceAllocatableMemory"
	// FitReplicas prefers clusters that more replicas of the workload fit.
	FitReplicas Prioritizer = "FitReplicas"
	// FitWait prefers clusters that the replicas of the workload fit sooner.
	FitWait Prioritizer = "FitWait"
	// FitCost prefers clusters where the nodes that the workload needs cost less.
	FitCost Prioritizer = "FitCost"
)

const (
	// AnnotationWorkload on a Placement is its WorkloadSpec as JSON, for hubs whose CRD does not have the field spec.workload.
	AnnotationWorkload = "plimsoll.dev/workload"
	// AnnotationReplicas on a PlacementDecision has the replicas of the workload that each cluster is to run, and since when, as JSON.
	AnnotationReplicas = "plimsoll.dev/replicas"
)

// Mode defines the weight of prioritizers that a policy does not list. The empty
// mode is Additive.
//
// +kubebuilder:validation:Enum=Additive;Exact;""
type Mode string

const (
	// Additive means that prioritizers that are not listed have their default weight:
	// 1 for Balance and Steady, 0 for all other prioritizers.
	Additive Mode = "Additive"
	// Exact means that prioritizers that are not listed have weight 0.
	Exact Mode = "Exact"
)

// ScoreType is the kind of source that provides a score.
//
// +kubebuilder:validation:Enum=BuiltIn;AddOn
type ScoreType string

const (
	// BuiltIn means that the score is computed by a Prioritizer.
	BuiltIn ScoreType = "BuiltIn"
	// AddOn means that the score is read from an AddOnPlacementScore in the namespace of the cluster.
	AddOn ScoreType = "AddOn"
)

// Placement selects managed clusters for a workload from the cluster sets that
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
	// Spec is the desired selection of clusters.
	Spec PlacementSpec `json:"spec"`
	// Status is the observed state. The selected clusters are listed in PlacementDecisions.
	//
	// +optional
	Status clusterv1beta1.PlacementStatus `json:"status,omitzero"`
}

// PlacementSpec is the desired selection of clusters. An empty spec selects all
// clusters of the cluster sets that are bound to the namespace.
//
// Lists with validation rules have a maximum length, because the API server limits
// the cost of a rule.
type PlacementSpec struct {
	// ClusterSets are the names of the cluster sets to select from. They must be bound
	// to the namespace. Defaults to all cluster sets that are bound to the namespace.
	//
	// +optional
	ClusterSets []string `json:"clusterSets,omitempty"`
	// NumberOfClusters is the number of clusters to select, at least 0. Defaults to all
	// feasible clusters. If fewer clusters are feasible, all of them are selected and
	// the condition PlacementSatisfied is False.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// Predicates select clusters. A cluster must match at least one predicate. If
	// there are no predicates, every cluster matches.
	//
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Predicates []clusterv1beta1.ClusterPredicate `json:"predicates,omitempty"`
	// PrioritizerPolicy defines how feasible clusters are ranked.
	//
	// +optional
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy,omitzero"`
	// SpreadPolicy defines how the selected clusters are spread over topologies such as regions.
	//
	// +optional
	SpreadPolicy clusterv1beta1.SpreadPolicy `json:"spreadPolicy,omitzero"`
	// Tolerations are the cluster taints that the placement tolerates. A cluster with
	// a taint that is not tolerated is not selected. The value must be empty if the
	// operator is Exists. tolerationSeconds count from the time at which the taint was
	// added and must be in [0, 3153600000] (100 years).
	//
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:XValidation:rule="!has(self.tolerationSeconds) || (self.tolerationSeconds >= 0 && self.tolerationSeconds <= 3153600000)",message="must be in [0, 3153600000], the latter being 100 years",fieldPath=".tolerationSeconds"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator.size() == 0 || self.operator in ['Equal', 'Exists']",message="must be Equal or Exists",fieldPath=".operator"
	// +kubebuilder:validation:items:XValidation:rule="(has(self.key) && self.key.size() > 0) || (has(self.operator) && self.operator == 'Exists')",message="must be Exists where key is empty",fieldPath=".operator"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value.size() == 0",message="must be empty where operator is Exists",fieldPath=".value"
	// +optional
	Tolerations []clusterv1beta1.Toleration `json:"tolerations,omitempty"`
	// DecisionStrategy divides the selected clusters into groups. A group has at most
	// groupStrategy.clustersPerDecisionGroup clusters: a number of at least 1, or a
	// percentage of the selected clusters from 1% to 100%. Defaults to all selected
	// clusters; 0, which Go clients send for an unset field, has the same effect.
	//
	// +kubebuilder:validation:XValidation:rule="!has(self.groupStrategy) || !has(self.groupStrategy.clustersPerDecisionGroup) || (type(self.groupStrategy.clustersPerDecisionGroup) == string ? self.groupStrategy.clustersPerDecisionGroup.endsWith('%') : self.groupStrategy.clustersPerDecisionGroup >= 0)",message="must be a number of clusters, at least 1 and not in quotes, or a percentage from 1% to 100%",fieldPath=".groupStrategy.clustersPerDecisionGroup"
	// +optional
	DecisionStrategy clusterv1beta1.DecisionStrategy `json:"decisionStrategy,omitzero"`
	// SortBy is the order of the decisions: ClusterName, or Score (highest first, ties
	// by name). Defaults to ClusterName.
	//
	// +kubebuilder:default=ClusterName
	// +optional
	SortBy clusterv1beta1.PlacementSortByType `json:"sortBy,omitempty"`
	// ScoreRateLimit is the minimum interval between two writes that change only the
	// scores of decisions and not the selected clusters: a number followed by h, m or
	// s. Defaults to 1m.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]+[hms]$`
	// +kubebuilder:default="1m"
	// +optional
	ScoreRateLimit string `json:"scoreRateLimit,omitempty"`
	// Workload is what the clusters are selected for. Where it is given, the annotation plimsoll.dev/workload must not be set.
	//
	// +optional
	Workload *WorkloadSpec `json:"workload,omitempty"`
}

// WorkloadSpec is the workload of a placement: a pod template, or a reference to an object that has one, and a number of replicas.
//
// +kubebuilder:validation:XValidation:rule="has(self.template) != has(self.ref)",message="must have exactly one of template and ref"
type WorkloadSpec struct {
	// Template is a Pod, PodTemplate, Deployment, ReplicaSet, StatefulSet, Job or ManifestWork, or the metadata and
	// spec of a pod template. Exactly one of template and ref must be set.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Template *runtime.RawExtension `json:"template,omitempty"`
	// Ref names an object in the namespace of the placement. Exactly one of template and ref must be set.
	//
	// +optional
	Ref *WorkloadRef `json:"ref,omitempty"`
	// Replicas is the number of replicas in each selected cluster or, with divide, in all of them together. Defaults
	// to the replicas of the object, or else 1.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
	// Divide divides the replicas over the selected clusters: equal shares, except that a cluster that fewer replicas
	// fit has fewer, and the others have the rest.
	//
	// +optional
	Divide bool `json:"divide,omitempty"`
	// RequireFit excludes clusters that the replicas do not fit, not even after a scale-up; with divide, clusters that
	// not even one replica fits.
	//
	// +optional
	RequireFit bool `json:"requireFit,omitempty"`
}

// WorkloadRef names an object with a pod template.
type WorkloadRef struct {
	// Kind is PodTemplate, Deployment or ManifestWork.
	//
	// +kubebuilder:validation:Enum=PodTemplate;Deployment;ManifestWork
	Kind string `json:"kind"`
	// Name is the name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PrioritizerPolicy defines how clusters are ranked: by the sum of weight times
// score over all prioritizers, highest first.
type PrioritizerPolicy struct {
	// Mode defines the weight of prioritizers that are not listed. In mode Additive
	// they have their default weight, which is 1 for Balance and Steady and 0 for the
	// others. In mode Exact they have weight 0. Defaults to Additive.
	//
	// +kubebuilder:default=Additive
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// Configurations are the prioritizers and their weights. If a built-in prioritizer
	// is listed repeatedly, its last weight counts; the weights of repeated scores of an
	// add-on are added. Condition PlacementMisconfigured warns of both.
	//
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerConfig is a prioritizer and its weight.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.scoreCoordinate)",message="must have exactly one of name and scoreCoordinate"
type PrioritizerConfig struct {
	// Name is the name of a built-in prioritizer. It is short for a scoreCoordinate of
	// type BuiltIn with this name in builtIn. Exactly one of name and scoreCoordinate
	// must be set.
	//
	// +optional
	Name Prioritizer `json:"name,omitempty"`
	// ScoreCoordinate identifies the score. Exactly one of name and scoreCoordinate
	// must be set.
	//
	// +optional
	ScoreCoordinate *ScoreCoordinate `json:"scoreCoordinate,omitempty"`
	// Weight is the weight of the score, in [-10, 10]. 0 disables the prioritizer; a
	// negative weight prefers clusters with low scores. Defaults to 1.
	//
	// +kubebuilder:validation:Minimum=-10
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:default=1
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// ScoreCoordinate identifies a score.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'BuiltIn' || has(self.builtIn)",message="must be given where type is BuiltIn: Balance, Steady, ResourceRatioCPU, ResourceRatioMemory, ResourceAllocatableCPU, ResourceAllocatableMemory, FitReplicas, FitWait or FitCost",fieldPath=".builtIn",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'AddOn' || has(self.addOn)",message="must be given where type is AddOn, with resourceName and scoreName",fieldPath=".addOn",reason=FieldValueRequired
type ScoreCoordinate struct {
	// Type is the kind of score: BuiltIn or AddOn. Defaults to BuiltIn.
	//
	// +kubebuilder:default=BuiltIn
	// +required
	Type ScoreType `json:"type,omitempty"`
	// BuiltIn is the name of a built-in prioritizer. Required if type is BuiltIn.
	//
	// +optional
	BuiltIn Prioritizer `json:"builtIn,omitempty"`
	// AddOn identifies a score of an AddOnPlacementScore. Required if type is AddOn.
	//
	// +optional
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// AddOnScore identifies a score of an AddOnPlacementScore.
type AddOnScore struct {
	// ResourceName is the name of the AddOnPlacementScore in the namespace of the
	// cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ResourceName string `json:"resourceName"`
	// ScoreName is the name of the score in that AddOnPlacementScore.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ScoreName string `json:"scoreName"`
}

// PlacementList is a list of Placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
