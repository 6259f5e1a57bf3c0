// Package v1alpha1 contains the type ClusterCapacity of API group plimsoll.dev: a summary of the nodes of a member cluster,
// from which a hub computes how many replicas of a pod fit.
//
// +kubebuilder:object:generate=true
// +groupName=plimsoll.dev
package v1alpha1

import (
	"fmt"
	"math"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types.
var GroupVersion = schema.GroupVersion{Group: "plimsoll.dev", Version: "v1alpha1"}

const (
	// Kind is the kind of a ClusterCapacity.
	Kind = "ClusterCapacity"
	// Resource is the name of the resource.
	Resource = "clustercapacities"
	// Name is the name of the only ClusterCapacity in the namespace of a cluster.
	Name = "plimsoll"
	// AnnotationPrice on a Node or a NodePool is the price of one node for an hour, as a decimal number such as "0.192".
	AnnotationPrice = "plimsoll.dev/price-per-hour"
	// AnnotationLimit on a ManagedCluster has the amounts that the workloads of placements may request in the cluster, as JSON such
	// as {"cpu": "1000", "memory": "4Ti", "pods": "5000", "namespaceShare": "50%"}. namespaceShare is the share of these amounts, and of
	// the free capacity, that the placements of one namespace get if other namespaces are bound to sets with the cluster. The default
	// is an equal share for each of these namespaces.
	AnnotationLimit = "plimsoll.dev/capacity-limit"
)

// Bounds of a ClusterCapacity. Larger objects are refused.
const (
	// MaxBytes is the maximum size as JSON.
	MaxBytes = 100_000
	// MaxGroups and MaxClasses are the maximum numbers of groups and classes of nodes.
	MaxGroups, MaxClasses = 300, 300
	// MaxVariousLabels and MaxTaints are the maximum lengths of the lists of a class.
	MaxVariousLabels, MaxTaints = 200, 50
	// MaxScaleUps, MaxQuotas, MaxHostPorts and MaxRecent are the maximum lengths of the other lists.
	MaxScaleUps, MaxQuotas, MaxHostPorts, MaxRecent = 100, 100, 100, 200
)

// AddToScheme adds the types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ClusterCapacity{}, &ClusterCapacityList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// ClusterCapacity is the free capacity of one cluster. It is in the namespace of the cluster on the hub, and has the name
// "plimsoll".
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=clustercapacities
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'plimsoll'",message="metadata.name must be plimsoll: a cluster has one summary"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Observed",type=date,JSONPath=`.status.observedAt`
type ClusterCapacity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Status is the observed capacity.
	Status ClusterCapacityStatus `json:"status,omitzero"`
}

// ClusterCapacityStatus is the observed capacity of a cluster. Amounts are never higher than in the cluster: where nodes are
// merged into a group, each amount is the lowest of them.
type ClusterCapacityStatus struct {
	// Cluster is the name of the cluster, which is also the namespace of the object.
	Cluster string `json:"cluster"`
	// ObservedAt is the time at which the cluster had this capacity.
	ObservedAt metav1.Time `json:"observedAt"`
	// Nodes is the number of nodes of the cluster.
	//
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
	// Classes are the labels and taints of groups of nodes.
	//
	// +kubebuilder:validation:MaxItems=300
	// +optional
	Classes []NodeClass `json:"classes,omitempty"`
	// Groups are groups of nodes with equal free amounts, rounded down. Nodes that take no pods, because they are not
	// ready or are cordoned, are in groups without free amounts.
	//
	// +kubebuilder:validation:MaxItems=300
	// +optional
	Groups []NodeGroup `json:"groups,omitempty"`
	// HostPorts are the host ports that pods use, with the number of their nodes.
	//
	// +kubebuilder:validation:MaxItems=100
	// +optional
	HostPorts []HostPort `json:"hostPorts,omitempty"`
	// Slack is what the slack policies of the cluster hold: the sum of the requests of their placeholders.
	//
	// +optional
	Slack v1.ResourceList `json:"slack,omitempty"`
	// ScaleUp is what the autoscaler of the cluster can add.
	//
	// +kubebuilder:validation:MaxItems=100
	// +optional
	ScaleUp []ScaleUp `json:"scaleUp,omitempty"`
	// Quotas are the amounts that quotas leave to named namespaces.
	//
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Quotas []Quota `json:"quotas,omitempty"`
	// Recent are the workloads with pods that were bound to a node in the last 15 minutes.
	//
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Recent []RecentWorkload `json:"recent,omitempty"`
}

// NodeClass has the labels and taints of nodes.
type NodeClass struct {
	// Labels are the labels that all nodes of the class have.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// VariousLabels are the keys of labels whose value differs between the nodes of the class, or that only some of them have.
	//
	// +kubebuilder:validation:MaxItems=200
	// +optional
	VariousLabels []string `json:"variousLabels,omitempty"`
	// Taints are the taints with effect NoSchedule or NoExecute of all nodes of the class.
	//
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Taints []v1.Taint `json:"taints,omitempty"`
}

// NodeGroup is a number of nodes of one class.
type NodeGroup struct {
	// Class is the index of the class in Classes.
	//
	// +kubebuilder:validation:Minimum=0
	Class int32 `json:"class"`
	// Nodes is the number of nodes.
	//
	// +kubebuilder:validation:Minimum=1
	Nodes int32 `json:"nodes"`
	// Free is what requests leave free on each node, and the number of further pods. Missing amounts are 0.
	//
	// +optional
	Free v1.ResourceList `json:"free,omitempty"`
	// Slack is what placeholder pods hold on each node, which any other pod can preempt.
	//
	// +optional
	Slack v1.ResourceList `json:"slack,omitempty"`
}

// HostPort is a port of nodes that pods use.
type HostPort struct {
	Port int32 `json:"port"`
	// Protocol is TCP, UDP or SCTP.
	Protocol v1.Protocol `json:"protocol"`
	// Nodes is the number of nodes on which a pod uses the port.
	Nodes int32 `json:"nodes"`
}

// ScaleUp is a shape of nodes that the autoscaler can add.
type ScaleUp struct {
	// Pool is the name of the NodePool or node group. The shapes of one pool share its limit.
	Pool string `json:"pool"`
	// Source is Karpenter or ClusterAutoscaler.
	Source string `json:"source"`
	// Class is the index of the class of the nodes in Classes.
	//
	// +kubebuilder:validation:Minimum=0
	Class int32 `json:"class"`
	// Free is what a new node has free for pods, after the pods of DaemonSets.
	Free v1.ResourceList `json:"free"`
	// MaxNodes is the number of nodes that the limits of the pool permit in addition to its nodes.
	//
	// +kubebuilder:validation:Minimum=1
	MaxNodes int32 `json:"maxNodes"`
	// BootSeconds is the time from the request of a node until it takes pods, if known.
	//
	// +optional
	BootSeconds *int32 `json:"bootSeconds,omitempty"`
	// PricePerHour is the price of a node for an hour, as a decimal number, if known.
	//
	// +kubebuilder:validation:MaxLength=16
	// +optional
	PricePerHour string `json:"pricePerHour,omitempty"`
}

// Quota is what the ResourceQuotas of a namespace leave.
type Quota struct {
	Namespace string `json:"namespace"`
	// Left has the names of resources of pods, such as cpu for requests.cpu, and pods.
	Left v1.ResourceList `json:"left"`
}

// RecentWorkload is the number of pods of a workload that were bound to a node in the last 15 minutes.
type RecentWorkload struct {
	Namespace string `json:"namespace"`
	// Name is the name of the Deployment, or of another controller of the pods.
	Name string `json:"name"`
	Pods int32  `json:"pods"`
}

// ClusterCapacityList is a list of ClusterCapacities.
//
// +kubebuilder:object:root=true
type ClusterCapacityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterCapacity `json:"items"`
}

// maxPrice is the maximum price of a node for an hour.
const maxPrice = 1_000_000

// ParsePrice returns a price in millionths. The text must not be empty.
func ParsePrice(text string) (int64, error) {
	price, err := strconv.ParseFloat(text, 64)
	if err != nil || !(price >= 0 && price <= maxPrice) {
		return 0, fmt.Errorf("found %q: must be a decimal number in [0, %d]", text, maxPrice)
	}
	return int64(math.Round(price * 1e6)), nil
}
