package service

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// requests count who asks for load, and how long the answers take.
type requests struct {
	total     *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// newRequests returns counts that are in the registry, if there is one.
func newRequests(registry prometheus.Registerer) *requests {
	const namespace, subsystem = "plimsoll", "load_watcher"
	r := &requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "[ALPHA] Requests answered, by what was asked for (watcher, health) and HTTP status code.",
		}, []string{"handler", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help: "[ALPHA] Time that answers took.", Buckets: prometheus.ExponentialBuckets(1e-4, 4, 8),
		}, []string{"handler"}),
	}
	if registry != nil {
		registry.MustRegister(r.total, r.durations)
	}
	return r
}

// of counts what a handler answers.
func (r *requests) of(handler string, next http.Handler) http.Handler {
	of := prometheus.Labels{"handler": handler}
	return promhttp.InstrumentHandlerCounter(r.total.MustCurryWith(of), promhttp.InstrumentHandlerDuration(r.durations.MustCurryWith(of), next))
}
