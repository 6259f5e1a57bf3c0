package service

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// requestMetrics are the metrics of requests.
type requestMetrics struct {
	total     *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// newRequestMetrics returns metrics, registered with the registry if it is not nil.
func newRequestMetrics(registry prometheus.Registerer) *requestMetrics {
	const namespace, subsystem = "plimsoll", "load_watcher"
	r := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "[ALPHA] Requests, by handler (watcher, health) and HTTP status code.",
		}, []string{"handler", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help: "[ALPHA] Duration of requests.", Buckets: prometheus.ExponentialBuckets(1e-4, 4, 8),
		}, []string{"handler"}),
	}
	if registry != nil {
		registry.MustRegister(r.total, r.durations)
	}
	return r
}

// instrument returns a handler that counts the requests of next.
func (r *requestMetrics) instrument(handler string, next http.Handler) http.Handler {
	labels := prometheus.Labels{"handler": handler}
	return promhttp.InstrumentHandlerCounter(r.total.MustCurryWith(labels),
		promhttp.InstrumentHandlerDuration(r.durations.MustCurryWith(labels), next))
}
