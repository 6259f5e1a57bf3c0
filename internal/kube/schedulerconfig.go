package kube

// The ConfigMap in which the chart stores the configuration of plimsoll-scheduler.
const (
	// SchedulerConfigurationSelector selects the ConfigMaps by their labels.
	SchedulerConfigurationSelector = "app.kubernetes.io/part-of=plimsoll,app.kubernetes.io/component=scheduler"
	// SchedulerConfigurationKey is the key of the KubeSchedulerConfiguration in the data.
	SchedulerConfigurationKey = "scheduler.yaml"
)
