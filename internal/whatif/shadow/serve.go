package shadow

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Serve serves the page, the report as JSON, the metrics and the health until ctx ends. current returns the report.
func Serve(ctx context.Context, listener net.Listener, current func() *Report) error {
	server := &http.Server{
		Handler:           protect(listener.Addr(), handler(current)),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

func handler(current func() *Report) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&Collector{Current: current})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	answer := func(pattern, contentType string, write func(*bytes.Buffer) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			var body bytes.Buffer
			if err := write(&body); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = body.WriteTo(w)
		})
	}
	answer("GET /{$}", "text/html; charset=utf-8", func(body *bytes.Buffer) error { return current().Document().Write(body) })
	answer("GET /report.json", "application/json", func(body *bytes.Buffer) error { return json.NewEncoder(body).Encode(current()) })
	return mux
}

// protect sets headers that permit the page its style sheet only. If the server listens on a loopback address, protect refuses other hosts:
// a page of another site can use a name that resolves to this machine, and would read the answer.
func protect(address net.Addr, next http.Handler) http.Handler {
	tcp, ok := address.(*net.TCPAddr)
	loopback := ok && tcp.IP.IsLoopback()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; " +
				"frame-ancestors 'none'",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if ip := net.ParseIP(host); loopback && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "Host: must be a loopback address or localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Collector exports a report.
type Collector struct{ Current func() *Report }

// The metrics. Their values cover the days of the report.
var (
	windowsDesc = prometheus.NewDesc("plimsoll_shadow_windows", "[ALPHA] Number of windows in the report.", nil, nil)
	newestDesc  = prometheus.NewDesc("plimsoll_shadow_newest_window_timestamp_seconds",
		"[ALPHA] End of the newest window that was replayed, 0 before the first.", nil, nil)
	usageDesc = prometheus.NewDesc("plimsoll_shadow_usage_ratio",
		"[ALPHA] Fraction of the pods of the newest window whose usage was recorded.", nil, nil)
	measuredDesc = prometheus.NewDesc("plimsoll_shadow_measured_overload_seconds", "[ALPHA] Time for which nodes were overloaded with the "+
		"recorded placements, summed over nodes and over the windows in the report.", nil, nil)
	errorDesc = prometheus.NewDesc("plimsoll_shadow_model_error_seconds",
		"[ALPHA] Error of the model in the time of overload: simulated with the profile in force, less measured.", nil, nil)
	avoidedDesc = prometheus.NewDesc("plimsoll_shadow_avoided_overload_seconds",
		"[ALPHA] Time of overload that a candidate would have avoided over the windows in the report.", []string{"candidate"}, nil)
	causedDesc = prometheus.NewDesc("plimsoll_shadow_caused_overload_seconds",
		"[ALPHA] Time of overload that a candidate would have caused over the windows in the report.", []string{"candidate"}, nil)
	highestDesc = prometheus.NewDesc(
		"plimsoll_shadow_highest_cpu_load_ratio",
		"[ALPHA] Highest CPU load of a node as a fraction of its allocatable CPU, simulated with a profile: the mean over the windows in the report.",
		[]string{"profile"},
		nil,
	)
	answerDesc = prometheus.NewDesc("plimsoll_shadow_verdict",
		"[ALPHA] Verdict on a candidate: 1 if it is better than the profile in force, 0.5 if no node "+
			"is overloaded or saturated and it leaves clearly more headroom on the fullest node, -1 if it is worse, 0 if the shadow cannot tell.",
		[]string{"candidate"}, nil)
)

// Describe implements prometheus.Collector.
func (*Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		windowsDesc, newestDesc, usageDesc, measuredDesc, errorDesc, avoidedDesc, causedDesc, highestDesc, answerDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	r := c.Current()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(windowsDesc, float64(r.Windows))
	newest := 0.0
	if r.Newest != nil {
		newest = float64(r.Newest.To.Unix())
		gauge(usageDesc, float64(r.Newest.UsageKnown)/float64(max(r.Newest.Pods, 1)))
	}
	gauge(newestDesc, newest)
	gauge(measuredDesc, 60*r.MeasuredMinutes)
	gauge(errorDesc, 60*r.Error.Sum)
	for _, p := range r.Scenario.Profiles {
		gauge(highestDesc, p.Figures["cpuLoadMax"].Mean, p.Name)
	}
	for _, v := range r.Verdicts {
		gauge(avoidedDesc, 60*v.Avoided.Sum, v.Candidate)
		gauge(causedDesc, 60*v.Caused.Sum, v.Candidate)
		gauge(answerDesc, map[result.Answer]float64{result.Better: 1, result.MoreHeadroom: 0.5, result.Worse: -1}[v.Answer], v.Candidate)
	}
}
