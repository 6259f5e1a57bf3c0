// Package v1alpha1 contains the type ResourceSlack of API group plimsoll.dev: the spare capacity that
// a pool of nodes keeps for the next pods.
//
// +kubebuilder:object:generate=true
// +groupName=plimsoll.dev
package v1alpha1

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types.
var GroupVersion = schema.GroupVersion{Group: "plimsoll.dev", Version: "v1alpha1"}

// Kind is the kind of ResourceSlack.
const Kind = "ResourceSlack"

// Annotations of workloads and pods.
const (
	// AnnotationSlack on a Deployment, ReplicaSet, StatefulSet or Job requests placeholders that mirror its pods: a number up to
	// 9999 ("2") or a percentage of its replicas up to 200% ("20%").
	AnnotationSlack = "plimsoll.dev/slack"
	// AnnotationBiggest with the value BiggestIgnore on a pod excludes it from the biggest pod. Use it for
	// large pods that are rarely created, such as databases.
	AnnotationBiggest = "plimsoll.dev/slack-biggest"
	// BiggestIgnore is the value of AnnotationBiggest.
	BiggestIgnore = "ignore"
)

// MaxNameLength is the maximum length of the name of a policy. Labels and names of placeholders
// contain it.
const MaxNameLength = 50

// Base selects the amounts that a rate refers to.
//
// +kubebuilder:validation:Enum=Requested;Allocatable
type Base string

const (
	// BaseRequested selects the requests of the pods of the pool.
	BaseRequested Base = "Requested"
	// BaseAllocatable selects the allocatable resources of the nodes of the pool, including nodes that the
	// slack itself adds.
	BaseAllocatable Base = "Allocatable"
)

// Backend selects how placeholders are held.
//
// +kubebuilder:validation:Enum=CapacityBuffer;Deployment
type Backend string

const (
	// BackendCapacityBuffer holds placeholders inside the autoscaler, as CapacityBuffer objects.
	BackendCapacityBuffer Backend = "CapacityBuffer"
	// BackendDeployment runs pause pods of low priority, for autoscalers without capacity buffers.
	BackendDeployment Backend = "Deployment"
)

// Backends lists the valid backends.
var Backends = []Backend{BackendCapacityBuffer, BackendDeployment}

// ResourceSlack is the slack policy of one pool of nodes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=slack
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50",message="metadata.name must have at most 50 characters: labels and names of placeholders contain it"
// +kubebuilder:printcolumn:name="Rate",type=string,JSONPath=`.spec.minRate`
// +kubebuilder:printcolumn:name="Base CPU",type=string,JSONPath=`.status.base.cpu`
// +kubebuilder:printcolumn:name="Target CPU",type=string,JSONPath=`.status.target.cpu`
// +kubebuilder:printcolumn:name="Placeholders",type=integer,JSONPath=`.status.placeholders`
// +kubebuilder:printcolumn:name="Available CPU",type=string,JSONPath=`.status.available.cpu`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceSlack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired slack.
	Spec ResourceSlackSpec `json:"spec"`
	// Status is the observed slack.
	Status ResourceSlackStatus `json:"status,omitzero"`
}

// ResourceSlackSpec is the desired slack.
//
// +kubebuilder:validation:XValidation:rule="!has(self.base) || self.base != 'Allocatable' || !string(self.minRate).matches('^(0*[1-9][0-9]{2,3}([.][0-9]+)?%|1([.]0+)?)$')",message="minRate must be less than 100% if base is Allocatable: the base includes the nodes that the slack adds"
// +kubebuilder:validation:XValidation:rule="!string(self.minRate).matches('^[0-9]{3,4}([.][0-9]+)?%$') || double(string(self.minRate).split('%')[0]) <= 200.0",message="minRate must be at most 200%: set a minimum for more"
// +kubebuilder:validation:XValidation:rule="!has(self.base) || self.base != 'Allocatable' || !has(self.pool) || !has(self.pool.devices) || self.pool.devices.size() == 0",fieldPath=".base",message="must be Requested if pool.devices is set: devices are counted by the requests of pods"
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || !has(self.maximum) || !has(self.minimum.cpu) || !has(self.maximum.cpu) || (string(self.minimum.cpu) + ' ' + string(self.maximum.cpu)).matches('[eE][-+0-9]') || quantity(string(self.minimum.cpu)).compareTo(quantity(string(self.maximum.cpu))) <= 0",fieldPath=".minimum.cpu",message="minimum.cpu must be at most maximum.cpu"
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || !has(self.maximum) || !has(self.minimum.memory) || !has(self.maximum.memory) || (string(self.minimum.memory) + ' ' + string(self.maximum.memory)).matches('[eE][-+0-9]') || quantity(string(self.minimum.memory)).compareTo(quantity(string(self.maximum.memory))) <= 0",fieldPath=".minimum.memory",message="minimum.memory must be at most maximum.memory"
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || !has(self.maximum) || !has(self.minimum.placeholders) || !has(self.maximum.placeholders) || self.minimum.placeholders <= self.maximum.placeholders",fieldPath=".minimum.placeholders",message="minimum.placeholders must be at most maximum.placeholders"
// +kubebuilder:validation:XValidation:rule="!has(self.maximum) || !has(self.maximum.cpu) || !has(self.schedules) || self.schedules.all(s, !has(s.minimum) || !has(s.minimum.cpu) || (string(s.minimum.cpu) + ' ' + string(self.maximum.cpu)).matches('[eE][-+0-9]') || quantity(string(s.minimum.cpu)).compareTo(quantity(string(self.maximum.cpu))) <= 0)",fieldPath=".schedules",message="minimum.cpu must be at most maximum.cpu"
// +kubebuilder:validation:XValidation:rule="!has(self.maximum) || !has(self.maximum.memory) || !has(self.schedules) || self.schedules.all(s, !has(s.minimum) || !has(s.minimum.memory) || (string(s.minimum.memory) + ' ' + string(self.maximum.memory)).matches('[eE][-+0-9]') || quantity(string(s.minimum.memory)).compareTo(quantity(string(self.maximum.memory))) <= 0)",fieldPath=".schedules",message="minimum.memory must be at most maximum.memory"
// +kubebuilder:validation:XValidation:rule="!has(self.maximum) || !has(self.maximum.placeholders) || !has(self.schedules) || self.schedules.all(s, !has(s.minimum) || !has(s.minimum.placeholders) || s.minimum.placeholders <= self.maximum.placeholders)",fieldPath=".schedules",message="minimum.placeholders must be at most maximum.placeholders"
// +kubebuilder:validation:XValidation:rule="!has(self.base) || self.base != 'Allocatable' || !has(self.schedules) || self.schedules.all(s, !has(s.minRate) || !string(s.minRate).matches('^(0*[1-9][0-9]{2,3}([.][0-9]+)?%|1([.]0+)?)$'))",fieldPath=".schedules",message="minRate must be less than 100% if base is Allocatable: the base includes the nodes that the slack adds"
// +kubebuilder:validation:XValidation:rule="!has(self.schedules) || self.schedules.all(s, !has(s.minRate) || !string(s.minRate).matches('^[0-9]{3,4}([.][0-9]+)?%$') || double(string(s.minRate).split('%')[0]) <= 200.0)",fieldPath=".schedules",message="minRate must be at most 200%: set a minimum for more"
type ResourceSlackSpec struct {
	// MinRate is the share of the base to hold as slack: a percentage such as 10%, or a fraction of at
	// most 1 such as "0.1", which needs quotes in YAML. The smallest unit is one millionth. "0"
	// holds capacity for the biggest pod only. The maximum is 200%.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == string && self.matches('^([0-9]{1,4}([.][0-9]{1,4})?%|0([.][0-9]{1,6})?|1([.]0{1,6})?)$')",message="must be a percentage such as 10%, or a fraction of at most 1 in quotes such as \"0.1\""
	MinRate string `json:"minRate"`
	// Minimum is the least slack to hold, however little the pods of the pool request. The default is none.
	//
	// +optional
	Minimum *Amount `json:"minimum,omitempty"`
	// Maximum is the most slack to hold, including the placeholder for the biggest pod and without placeholders
	// that mirror workloads. The default is none.
	//
	// +optional
	Maximum *Amount `json:"maximum,omitempty"`
	// Schedules replace minRate and minimum at times of the week. If several apply at a time, the first in
	// the list does.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Schedules []Schedule `json:"schedules,omitempty"`
	// Spread divides the placeholders of the rate among domains such as zones. The placeholder for the biggest pod may be in any. The
	// default is no spread.
	//
	// +optional
	Spread *Spread `json:"spread,omitempty"`
	// Base selects the amounts that the rate refers to. The default is Requested.
	//
	// +kubebuilder:default=Requested
	// +optional
	Base Base `json:"base,omitempty"`
	// Granularity is the number of placeholders that fit an average node, from 1 to 100. The default is
	// 5.
	//
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Granularity *int32 `json:"granularity,omitempty"`
	// CoverBiggestPod holds capacity for a pod as large as the biggest pod of the pool. The default is
	// true.
	//
	// +kubebuilder:default=true
	// +optional
	CoverBiggestPod *bool `json:"coverBiggestPod,omitempty"`
	// Pool selects the nodes. The default is all nodes without taints.
	//
	// +optional
	Pool Pool `json:"pool,omitzero"`
	// MaxPlaceholders is the maximum number of placeholders, from 1 to 100,000. The default is 10,000.
	// Placeholders of the rate take precedence over placeholders that mirror workloads.
	//
	// +kubebuilder:default=10000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxPlaceholders *int32 `json:"maxPlaceholders,omitempty"`
	// Mirrors states which workloads may request placeholders that mirror their pods, and how many. The
	// default is none.
	//
	// +kubebuilder:default={}
	// +optional
	Mirrors Mirrors `json:"mirrors,omitzero"`
	// Backend selects how placeholders are held. The default is CapacityBuffer.
	//
	// +kubebuilder:default=CapacityBuffer
	// +optional
	Backend Backend `json:"backend,omitempty"`
	// PriorityClassName is the PriorityClass of the placeholders. Its value must be from -10 to -1: other
	// pods have a higher priority, and autoscalers ignore pods with a lower one.
	//
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// ProvisioningStrategy is passed on to the CapacityBuffers if the installed version of the autoscaler's API
	// has this field. The default is the default of the autoscaler.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ProvisioningStrategy string `json:"provisioningStrategy,omitempty"`
}

// Amount is an amount of slack. Missing fields do not bound it.
//
// +kubebuilder:validation:MinProperties=1
type Amount struct {
	// CPU is an amount of CPU, such as "8".
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}([.][0-9]{1,9})?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).isGreaterThan(quantity('0'))",message="must be a quantity of more than 0, such as 8 or 32Gi, with at most 15 digits"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory is an amount of memory, such as 32Gi.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}([.][0-9]{1,9})?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).isGreaterThan(quantity('0'))",message="must be a quantity of more than 0, such as 8 or 32Gi, with at most 15 digits"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Placeholders is a number of placeholders, from 1 to 100,000. As a minimum, each of them has the size that
	// granularity and the biggest pod permit.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Placeholders *int32 `json:"placeholders,omitempty"`
}

// Schedule is a part of the week with its own rate and minimum.
//
// +kubebuilder:validation:XValidation:rule="has(self.minRate) || has(self.minimum)",message="minRate or minimum must be set"
// +kubebuilder:validation:XValidation:rule="self.from != self.to && !(self.from == '00:00' && self.to == '00:00')",fieldPath=".to",message="must differ from from: the schedule never applies; a day ends at 24:00"
type Schedule struct {
	// Days are the days on which the schedule starts: days and ranges such as Mon-Fri or Sat,Sun. The default is
	// every day.
	//
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^((Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?)(,(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?)*$`
	// +optional
	Days string `json:"days,omitempty"`
	// From is the time of day at which the schedule starts, such as "07:30".
	//
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	// +kubebuilder:validation:MaxLength=5
	From string `json:"from"`
	// To is the time of day at which the schedule ends, up to "24:00". If it is before from, the schedule ends
	// on the next day.
	//
	// +kubebuilder:validation:Pattern=`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`
	// +kubebuilder:validation:MaxLength=5
	To string `json:"to"`
	// TimeZone is the IANA time zone of from and to, such as Europe/Berlin. The default is UTC.
	//
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	// +kubebuilder:validation:XValidation:rule="self != 'Local'",message="must be the name of an IANA time zone such as Europe/Berlin"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// MinRate replaces spec.minRate while the schedule applies. The default is spec.minRate.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == string && self.matches('^([0-9]{1,4}([.][0-9]{1,4})?%|0([.][0-9]{1,6})?|1([.]0{1,6})?)$')",message="must be a percentage such as 10%, or a fraction of at most 1 in quotes such as \"0.1\""
	// +optional
	MinRate string `json:"minRate,omitempty"`
	// Minimum replaces spec.minimum while the schedule applies. The default is spec.minimum.
	//
	// +optional
	Minimum *Amount `json:"minimum,omitempty"`
	// LeadSeconds is the time before from at which the schedule begins to apply: the time that nodes take to boot. It is rounded up
	// to minutes, and at most an hour. The default is 0.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	LeadSeconds *int32 `json:"leadSeconds,omitempty"`
}

// Spread spreads placeholders over domains: the values of a label of the usable nodes of the pool.
type Spread struct {
	// TopologyKey is the label, such as topology.kubernetes.io/zone.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	TopologyKey string `json:"topologyKey"`
	// MinPerDomain is the least number of placeholders of the rate in each domain, from 1 to 1,000. The default is 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MinPerDomain *int32 `json:"minPerDomain,omitempty"`
}

// Pool selects nodes of a cluster.
type Pool struct {
	// NodeSelector contains labels that the nodes must have.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations must match the NoSchedule and NoExecute taints of the nodes. Nodes with other such
	// taints are not in the pool.
	//
	// +optional
	Tolerations []v1.Toleration `json:"tolerations,omitempty"`
	// Devices are extended resources such as nvidia.com/gpu, at most 8. Pods that request one of them have placeholders of their
	// own: for each amount of the devices, the rate of the number of these pods, with the mean of their requests. They are not part
	// of the base of other placeholders. Placeholders for pods that request several devices request them all.
	//
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && !self.contains('kubernetes.io/') && !self.startsWith('requests.')",message="must be the name of an extended resource such as nvidia.com/gpu"
	// +listType=set
	// +optional
	Devices []string `json:"devices,omitempty"`
	// NodeShape is the CPU and memory that pods can use on a node of the pool. A minimum is held with it before the pool has its
	// first node. Later, the last known node counts.
	//
	// +kubebuilder:validation:XValidation:rule="has(self.cpu) && has(self.memory) && !has(self.placeholders)",message="must have cpu and memory, and nothing else"
	// +optional
	NodeShape *Amount `json:"nodeShape,omitempty"`
}

// MaxDevices is the maximum number of devices of a pool.
const MaxDevices = 8

// Mirrors states which workloads with annotation plimsoll.dev/slack have placeholders. Whoever may write
// workloads in a selected namespace can cause an autoscaler to add nodes.
type Mirrors struct {
	// NamespaceSelector selects namespaces by their labels. An empty selector selects all namespaces. The
	// default selects none.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// MaxPerWorkload is the maximum number of placeholders of one workload, from 1 to 10,000. The default
	// is 100.
	//
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxPerWorkload *int32 `json:"maxPerWorkload,omitempty"`
	// MaxPerNamespace is the maximum number of placeholders of all workloads of one namespace, from 1 to
	// 100,000. The default is 200.
	//
	// +kubebuilder:default=200
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxPerNamespace *int32 `json:"maxPerNamespace,omitempty"`
}

// Types of the conditions of a ResourceSlack.
const (
	// ConditionReady reports whether the desired slack is available, without the placeholders that mirror workloads.
	ConditionReady = "Ready"
	// ConditionFeasible reports whether placeholders can hold the desired rate and the biggest pod.
	ConditionFeasible = "Feasible"
	// ConditionMirrorsFeasible reports whether all workloads can have the placeholders that they request. Policies
	// without such workloads do not have it. It does not change ConditionFeasible and ConditionReady, so that one
	// workload does not change the conditions of the rate.
	ConditionMirrorsFeasible = "MirrorsFeasible"
	// ConditionAccepted reports what the autoscaler states about the buffers of the policy: True if it takes
	// all of them into account in full, False if it refuses or limits one, Unknown if it has not reported on
	// one. Policies with backend Deployment do not have it.
	ConditionAccepted = "Accepted"
	// ConditionProvisioned reports whether the nodes have capacity for all placeholders.
	ConditionProvisioned = "Provisioned"
)

// ResourceSlackStatus is the observed slack.
type ResourceSlackStatus struct {
	// ObservedGeneration is the generation of the spec that the status refers to.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Base is the amount that the rate refers to.
	//
	// +optional
	Base v1.ResourceList `json:"base,omitempty"`
	// Target is the part of the base to hold as slack.
	//
	// +optional
	Target v1.ResourceList `json:"target,omitempty"`
	// Total is the sum of the requests of all placeholders.
	//
	// +optional
	Total v1.ResourceList `json:"total,omitempty"`
	// Available is the capacity that the pods of the pool leave free on its usable nodes.
	//
	// +optional
	Available v1.ResourceList `json:"available,omitempty"`
	// Placeholders is the number of placeholders.
	//
	// +optional
	Placeholders int64 `json:"placeholders,omitempty"`
	// Mirrored is the number of placeholders that mirror workloads.
	//
	// +optional
	Mirrored int64 `json:"mirrored,omitempty"`
	// Placed is the number of placeholders that fit the nodes of the pool now.
	//
	// +optional
	Placed int64 `json:"placed,omitempty"`
	// Domains are the domains of spec.spread.
	//
	// +listType=atomic
	// +optional
	Domains []string `json:"domains,omitempty"`
	// PerDomain is the number of placeholders of the rate that each domain has at least.
	//
	// +optional
	PerDomain int64 `json:"perDomain,omitempty"`
	// Schedule states which of spec.schedules applies, and when this changes. Policies without schedules do not
	// have it.
	//
	// +optional
	Schedule *ScheduleStatus `json:"schedule,omitempty"`
	// Requests are the requests of one of the equal placeholders of the rate.
	//
	// +optional
	Requests v1.ResourceList `json:"requests,omitempty"`
	// NodeShape is the CPU and memory, after DaemonSet pods, of the largest node that the pool has or had last.
	//
	// +optional
	NodeShape v1.ResourceList `json:"nodeShape,omitempty"`
	// Conditions are Ready, Feasible, MirrorsFeasible, Accepted and Provisioned.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ScheduleStatus states which rate and minimum apply now, and which next.
type ScheduleStatus struct {
	// Active is the index in spec.schedules of the schedule that applies. If it is missing, spec.minRate and
	// spec.minimum apply.
	//
	// +optional
	Active *int32 `json:"active,omitempty"`
	// MinRate is the rate that applies, and Minimum the minimum.
	//
	// +optional
	MinRate string `json:"minRate,omitempty"`
	// +optional
	Minimum *Amount `json:"minimum,omitempty"`
	// NextChange is the time at which another schedule, or none, applies. It is missing if this does not change.
	//
	// +optional
	NextChange *metav1.Time `json:"nextChange,omitempty"`
	// NextMinRate is the rate that applies from then on, and NextMinimum the minimum.
	//
	// +optional
	NextMinRate string `json:"nextMinRate,omitempty"`
	// +optional
	NextMinimum *Amount `json:"nextMinimum,omitempty"`
}

// ResourceSlackList is a list of ResourceSlacks.
//
// +kubebuilder:object:root=true
type ResourceSlackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the policies.
	Items []ResourceSlack `json:"items"`
}
