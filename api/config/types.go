// Package config holds the arguments of Plimsoll's scheduler plugins, as they
// stand in a KubeSchedulerConfiguration under pluginConfig[].args. Importing it
// registers them with the scheduler's configuration scheme, in group
// kubescheduler.config.k8s.io, so that kube-scheduler decodes them strictly,
// fills in their defaults and prints them like its own.
//
// +kubebuilder:object:generate=true
package config

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

// Mode says which nodes NodeResourcesAllocatable prefers.
type Mode string

const (
	// Least prefers the nodes with the least allocatable resources, so that
	// large pods still find a large node free.
	Least Mode = "Least"
	// Most prefers the nodes with the most allocatable resources, so that small
	// nodes stay empty and can be given back.
	Most Mode = "Most"
)

// ResourceWeight is a resource and how much it counts.
type ResourceWeight struct {
	// Name of the resource as in a node's status.allocatable: cpu, memory,
	// ephemeral-storage, hugepages-2Mi, nvidia.com/gpu.
	Name string `json:"name"`
	// Weight in [1, 2147483647]; 1 if left out.
	Weight *int64 `json:"weight,omitempty"`
}

// NodeResourcesAllocatableArgs are the arguments of NodeResourcesAllocatable.
//
// +kubebuilder:object:root=true
type NodeResourcesAllocatableArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Mode is Least (the default) or Most.
	Mode Mode `json:"mode,omitempty"`
	// Resources that count; cpu with weight 1048576 and memory with weight 1 if
	// left out: a millicore weighs as much as a mebibyte.
	Resources []ResourceWeight `json:"resources,omitempty"`
}

// NodeResourcesLimitsArgs are the arguments of NodeResourcesLimits.
//
// +kubebuilder:object:root=true
type NodeResourcesLimitsArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Resources that count; cpu and memory with weight 1 if left out.
	Resources []ResourceWeight `json:"resources,omitempty"`
	// DefaultLimits is what a pod without a limit on cpu, memory or
	// ephemeral-storage is reckoned with, by resource. Of a resource left out,
	// such a pod is reckoned to use all that its node has.
	DefaultLimits map[string]resource.Quantity `json:"defaultLimits,omitempty"`
}

// LowRiskOverCommitmentArgs are the arguments of LowRiskOverCommitment.
//
// +kubebuilder:object:root=true
type LowRiskOverCommitmentArgs struct {
	metav1.TypeMeta `json:",inline"`
	// SmoothingWindowSize is the number of samples that the measured deviation
	// was smoothed over, at least 1; 5 if left out.
	SmoothingWindowSize *int64 `json:"smoothingWindowSize,omitempty"`
	// RiskLimitWeight is how much the limits count against the measured load, in
	// [0, 1]; 0.5 if left out.
	RiskLimitWeight *float64 `json:"riskLimitWeight,omitempty"`
	// RiskLimitWeights overrides RiskLimitWeight for cpu or memory.
	RiskLimitWeights map[string]float64 `json:"riskLimitWeights,omitempty"`
	// WatcherAddress is the URL of a load-watcher service to read load from.
	// Without it and without a metric provider, only limits are judged.
	WatcherAddress string `json:"watcherAddress,omitempty"`
	// MetricProvider is read in the scheduler itself, in place of a service.
	MetricProvider metricprovider.Config `json:"metricProvider,omitzero"`
	// PollInterval is the time between two reads of the load, at least 100ms;
	// 30s if left out.
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
	// MaxLoadAge is how old load may be and still count, at least 1s; 5m if left
	// out. Of older load nothing is used and only limits are judged.
	MaxLoadAge *metav1.Duration `json:"maxLoadAge,omitempty"`
	// CountRecentPods adds, to the measured load of a node, the requests of pods
	// that came to it so recently that the measurement does not have them; true
	// if left out. A pod that requests nothing counts as kube-scheduler counts
	// it: 100m of CPU and 200Mi of memory for each container.
	CountRecentPods *bool `json:"countRecentPods,omitempty"`
}
