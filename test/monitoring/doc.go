// Package monitoring tests that docs/metrics.md has exactly the registered metrics,
// that dashboards use only registered metrics, and that alerts fire when they should
// and not otherwise.
package monitoring
