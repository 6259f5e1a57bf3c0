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

// MetricProvider says where load is read from. What a type has no use for must
// be left out.
type MetricProvider struct {
	// Type of the provider; see MetricProviderTypes.
	Type string `json:"type,omitempty"`
	// Address of the provider: a URL for Prometheus and SignalFx, the path of the
	// file for File; none for KubernetesMetricsServer.
	Address string `json:"address,omitempty"`
	// Token is the bearer token to show; prefer TokenFile, which keeps it out of
	// the configuration.
	Token string `json:"token,omitempty"`
	// TokenFile is a file with the token, read anew for every request.
	TokenFile string `json:"tokenFile,omitempty"`
	// CAFile has the certificates that the provider's is checked with; those of
	// the system if left out.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile have the certificate to show to the provider.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// InsecureSkipVerify turns off the check of the provider's certificate.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// Window is what means and deviations are over, at least 1s; 15m if left out.
	Window metav1.Duration `json:"window,omitzero"`
	// Step is the time between the points that they are made of, for Prometheus
	// and SignalFx; 1m if left out.
	Step metav1.Duration `json:"step,omitzero"`
	// RateWindow is what Prometheus averages a point of CPU utilization over, at
	// least twice the time between two scrapes; 5m if left out.
	RateWindow metav1.Duration `json:"rateWindow,omitzero"`
	// NodeLabel is the label of Prometheus' series that has the node's name. If
	// left out, node, nodename and kubernetes_node are tried, then the host of
	// instance is looked up among the nodes' addresses.
	NodeLabel string `json:"nodeLabel,omitempty"`
	// Selector is put into every selector of the default queries to Prometheus,
	// such as cluster="prod".
	Selector string `json:"selector,omitempty"`
	// Queries are PromQL expressions in place of the default ones.
	Queries MetricQueries `json:"queries,omitzero"`
	// CPUMetric and MemoryMetric are the names of SignalFx's metrics in percent;
	// cpu.utilization and memory.utilization if left out.
	CPUMetric    string `json:"cpuMetric,omitempty"`
	MemoryMetric string `json:"memoryMetric,omitempty"`
	// HostDimension is the dimension of SignalFx's series that names the host;
	// host if left out.
	HostDimension string `json:"hostDimension,omitempty"`
	// Filter are further terms of the query to SignalFx, such as
	// kubernetes_cluster:"prod".
	Filter string `json:"filter,omitempty"`
}

// MetricQueries are PromQL expressions. Each has one sample for every node, a
// fraction of the machine's capacity in [0, 1]. One that is left out is asked
// for in the default way.
type MetricQueries struct {
	CPUAvg    string `json:"cpuAvg,omitempty"`
	CPUStd    string `json:"cpuStd,omitempty"`
	MemoryAvg string `json:"memoryAvg,omitempty"`
	MemoryStd string `json:"memoryStd,omitempty"`
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
	MetricProvider MetricProvider `json:"metricProvider,omitzero"`
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
