package prometheus

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"
)

// Size of a machine.
const (
	cores       = 4
	memoryBytes = 16 << 30
)

// Load is the load of a machine.
type Load struct{ CPU, Memory Utilization }

// Utilization is the utilization of a resource as a fraction of its capacity.
type Utilization struct{ Mean, StdDev float64 }

// Exporter simulates the node-exporters of machines: it serves the metrics of each machine under /NAME. The load of a machine is a sine
// around its mean, and the counters are exact integrals of it at the time of each scrape.
type Exporter struct {
	period time.Duration

	mu       sync.Mutex
	machines map[string]*machine
}

// machine is a machine since its load was set.
type machine struct {
	load  Load
	since time.Time
	// idle is the idle time of all cores before that, total their whole time, in seconds.
	idle, total float64
}

// NewExporter returns an exporter without machines. Loads are sines with this period.
func NewExporter(period time.Duration) *Exporter {
	return &Exporter{period: period, machines: map[string]*machine{}}
}

// Set sets the load of a machine from now on and creates the machine if it does not exist. The
// standard deviation is limited so that mean - sqrt(2) x deviation is at least 0 and the sum at most 1.
func (e *Exporter) Set(name string, load Load) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	m := e.machines[name]
	if m == nil {
		m = &machine{since: now, load: load}
		e.machines[name] = m
	}
	m.idle, m.total = e.counters(m, now)
	m.load, m.since = load, now
}

// Remove removes a machine.
func (e *Exporter) Remove(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.machines, name)
}

// amplitude returns the amplitude of the sine.
func amplitude(u Utilization) float64 {
	return min(u.StdDev*math.Sqrt2, u.Mean, 1-u.Mean)
}

// phase returns the phase of the sine at a time, in radians.
func (e *Exporter) phase(t time.Time) float64 {
	return 2 * math.Pi * float64(t.UnixNano()%int64(e.period)) / float64(e.period)
}

// counters returns the idle time and the whole time of a machine's cores. The integral of
// mean + a sin(2 pi t / P) is mean t - a P / (2 pi) cos(2 pi t / P).
func (e *Exporter) counters(m *machine, now time.Time) (idle, total float64) {
	elapsed := now.Sub(m.since).Seconds()
	swing := amplitude(m.load.CPU) * e.period.Seconds() / (2 * math.Pi) * (math.Cos(e.phase(m.since)) - math.Cos(e.phase(now)))
	used := m.load.CPU.Mean*elapsed + swing
	return m.idle + cores*(elapsed-used), m.total + cores*elapsed
}

// ServeHTTP implements http.Handler.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[1:]
	now := time.Now()
	e.mu.Lock()
	m, known := e.machines[name]
	var idle, total, memory float64
	if known {
		idle, total = e.counters(m, now)
		memory = m.load.Memory.Mean + amplitude(m.load.Memory)*math.Sin(e.phase(now))
	}
	e.mu.Unlock()
	if !known {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintln(w, "# TYPE node_cpu_seconds_total counter")
	for cpu := range cores {
		// Used time and idle time are each spread over two modes.
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"idle\"} %.9f\n", cpu, idle/cores*0.95)
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"iowait\"} %.9f\n", cpu, idle/cores*0.05)
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"user\"} %.9f\n", cpu, (total-idle)/cores*0.7)
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"system\"} %.9f\n", cpu, (total-idle)/cores*0.3)
	}
	fmt.Fprintf(w, "# TYPE node_memory_MemTotal_bytes gauge\nnode_memory_MemTotal_bytes %d\n", int64(memoryBytes))
	fmt.Fprintf(w, "# TYPE node_memory_MemAvailable_bytes gauge\nnode_memory_MemAvailable_bytes %.0f\n", memoryBytes*(1-memory))
	fmt.Fprintf(w, "# TYPE node_uname_info gauge\nnode_uname_info{nodename=%q} 1\n", name)
}
