// Package v1alpha1 has the type ResourceSlack of group plimsoll.dev: how much
// room a pool of nodes keeps to spare for the next pods.
//
// +kubebuilder:object:generate=true
// +groupName=plimsoll.dev
package v1alpha1

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types.
var GroupVersion = schema.GroupVersion{Group: "plimsoll.dev", Version: "v1alpha1"}

// Kind of the type.
const Kind = "ResourceSlack"

// Annotations of workloads and pods.
const (
	// AnnotationSlack on a Deployment, ReplicaSet, StatefulSet or Job: placeholders
	// like its pods are held, so many ("2") or a percentage of its replicas ("20%").
	AnnotationSlack = "plimsoll.dev/slack"
	// AnnotationBiggest with the value "ignore" on a pod: it does not define the
	// biggest pod. For databases, whose like does not come at once.
	AnnotationBiggest = "plimsoll.dev/slack-biggest"
	// BiggestIgnore is that value.
	BiggestIgnore = "ignore"
)

// MaxNameLength is how long the name of a policy may be: labels and names of
// placeholders are made of it.
const MaxNameLength = 50

// Base is what a rate is a part of.
//
// +kubebuilder:validation:Enum=Requested;Allocatable
type Base string

const (
	// BaseRequested: what the pods of the pool request.
	BaseRequested Base = "Requested"
	// BaseAllocatable: what the nodes of the pool have for pods, those included
	// that the slack itself brings.
	BaseAllocatable Base = "Allocatable"
)

// Backend is how placeholders are held.
//
// +kubebuilder:validation:Enum=CapacityBuffer;Deployment
type Backend string

const (
	// BackendCapacityBuffer: inside the autoscaler, as CapacityBuffer objects.
	BackendCapacityBuffer Backend = "CapacityBuffer"
	// BackendDeployment: real pause pods of low priority, for autoscalers without
	// buffers.
	BackendDeployment Backend = "Deployment"
)

// ResourceSlack is a policy for one pool of nodes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=slack
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50",message="metadata.name must have at most 50 characters: the names of placeholders are made of it"
// +kubebuilder:printcolumn:name="Rate",type=string,JSONPath=`.spec.minRate`
// +kubebuilder:printcolumn:name="Base CPU",type=string,JSONPath=`.status.base.cpu`
// +kubebuilder:printcolumn:name="Target CPU",type=string,JSONPath=`.status.target.cpu`
// +kubebuilder:printcolumn:name="Placeholders",type=integer,JSONPath=`.status.placeholders`
// +kubebuilder:printcolumn:name="Available CPU",type=string,JSONPath=`.status.available.cpu`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceSlack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec ResourceSlackSpec `json:"spec"`
	// Status is what there is.
	Status ResourceSlackStatus `json:"status,omitzero"`
}

// ResourceSlackSpec is what is wanted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.base) || self.base != 'Allocatable' || (self.minRate.endsWith('%') ? double(self.minRate.split('%')[0]) < 100.0 : double(self.minRate) < 1.0)",message="minRate must be under 100% where base is Allocatable: the nodes that the slack brings count themselves"
type ResourceSlackSpec struct {
	// MinRate is the part of the base to keep to spare, at least 0, in millionths at
	// the finest: 10% or 0.1. 0 keeps room for the biggest pod only.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]{1,4}(\.[0-9]{1,6}|(\.[0-9]{1,4})?%)?$`
	MinRate string `json:"minRate"`
	// Base is what the rate is a part of; Requested if left out.
	//
	// +kubebuilder:default=Requested
	// +optional
	Base Base `json:"base,omitempty"`
	// Granularity is how many placeholders an average node would hold, in [1,
	// 100]; 5 if left out.
	//
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Granularity *int32 `json:"granularity,omitempty"`
	// CoverBiggestPod keeps room for a pod as big as any of the pool's; true if
	// left out.
	//
	// +kubebuilder:default=true
	// +optional
	CoverBiggestPod *bool `json:"coverBiggestPod,omitempty"`
	// Pool says which nodes it is about; all but control-plane nodes if left out.
	//
	// +optional
	Pool Pool `json:"pool,omitzero"`
	// MaxPlaceholders bounds the number of placeholders, at least 1; no bound if
	// left out. Those of the rate come before those of workloads.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxPlaceholders *int32 `json:"maxPlaceholders,omitempty"`
	// Backend is how placeholders are held; CapacityBuffer if left out.
	//
	// +kubebuilder:default=CapacityBuffer
	// +optional
	Backend Backend `json:"backend,omitempty"`
	// PriorityClassName of the placeholders. Its value must be in [-10, -1]: real
	// pods come first, and autoscalers drop what is lower.
	//
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Pool is a part of the nodes of a cluster.
type Pool struct {
	// NodeSelector has labels that the nodes have.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of taints of the nodes; nodes with other taints that keep pods
	// away are not of the pool.
	//
	// +optional
	Tolerations []v1.Toleration `json:"tolerations,omitempty"`
}

// Conditions of a ResourceSlack.
const (
	// ConditionReady: the slack that is wanted is there.
	ConditionReady = "Ready"
	// ConditionFeasible: what is wanted can be held in placeholders.
	ConditionFeasible = "Feasible"
	// ConditionProvisioned: the autoscaler has made room for the placeholders.
	ConditionProvisioned = "Provisioned"
)

// ResourceSlackStatus is what there is.
type ResourceSlackStatus struct {
	// ObservedGeneration is that of the spec that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Base is what the rate is a part of, Target what of it is to be spare, Total
	// what the placeholders request together, Available what is spare now.
	//
	// +optional
	Base v1.ResourceList `json:"base,omitempty"`
	// +optional
	Target v1.ResourceList `json:"target,omitempty"`
	// +optional
	Total v1.ResourceList `json:"total,omitempty"`
	// +optional
	Available v1.ResourceList `json:"available,omitempty"`
	// Placeholders is the number of them, Mirrored how many of these are like the
	// pods of workloads, Placed how many have room now, and Requests what one of the
	// equal ones of the rate requests.
	//
	// +optional
	Placeholders int64 `json:"placeholders,omitempty"`
	// +optional
	Mirrored int64 `json:"mirrored,omitempty"`
	// +optional
	Placed int64 `json:"placed,omitempty"`
	// +optional
	Requests v1.ResourceList `json:"requests,omitempty"`
	// Conditions are Ready, Feasible and Provisioned.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourceSlackList is a list of them.
//
// +kubebuilder:object:root=true
type ResourceSlackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceSlack `json:"items"`
}
