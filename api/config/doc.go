// Package config defines the arguments of Plimsoll's scheduler plugins, for the field
// profiles[].pluginConfig[].args of a KubeSchedulerConfiguration. Importing it registers them with the
// scheduler's configuration scheme, in group kubescheduler.config.k8s.io, so that kube-scheduler
// decodes them strictly, sets their defaults and prints them like the arguments of in-tree plugins.
//
// The arguments of a plugin, with their defaults and their validation, are in the file with the
// plugin's name.
//
// +kubebuilder:object:generate=true
package config
