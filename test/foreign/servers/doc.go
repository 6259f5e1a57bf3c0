// Package servers runs the chart and the controllers together with servers and tools of other projects: Helm, kubectl, Karpenter,
// metrics-server and Prometheus.
package servers
