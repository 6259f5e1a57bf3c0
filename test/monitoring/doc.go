// Package monitoring tests what people watch Plimsoll with: that docs/metrics.md
// has the metrics there are, that dashboards ask for metrics that there are, and
// that alerts fire when they should and not otherwise.
package monitoring
