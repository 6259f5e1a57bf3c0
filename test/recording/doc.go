// Package recording tests recordings against a real Prometheus, a real kube-state-metrics and a real control plane.
package recording
