// Package nodeexporter plays the node-exporters of many machines, for tests and
// the demo: it serves the metrics of node-exporter that load is worked out from,
// of machines that do what they are told.
//
// A machine's load swings around its mean like a sine. The counters are exact
// integrals of that, whenever they are scraped.
package nodeexporter

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// The machine that is played.
const (
	cores       = 4
	memoryBytes = 16 << 30
)

// Exporter serves the metrics of every machine under /NAME.
type Exporter struct {
	period time.Duration

	mu       sync.Mutex
	machines map[string]*machine
}

// machine is one machine since it was last told what to do.
type machine struct {
	load  load.Node
	since time.Time
	// idle is the time that all cores together had been idle until then, in
	// seconds; total the time they had run.
	idle, total float64
}

// New returns an exporter without machines, whose loads swing with that period.
func New(period time.Duration) *Exporter {
	return &Exporter{period: period, machines: map[string]*machine{}}
}

// Set makes a machine have a load from now on, a new machine if there is none
// of that name. A deviation is honoured as far as mean - sqrt(2) x deviation is
// at least 0, and the sum at most 1.
func (e *Exporter) Set(name string, load load.Node) {
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

// Remove makes a machine fall silent.
func (e *Exporter) Remove(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.machines, name)
}

// amplitude returns how far a load swings.
func amplitude(u load.Utilization) float64 {
	return min(u.StdDev*math.Sqrt2, u.Mean, 1-u.Mean)
}

// phase returns where in the swing an instant is, in radians.
func (e *Exporter) phase(t time.Time) float64 {
	return 2 * math.Pi * float64(t.UnixNano()%int64(e.period)) / float64(e.period)
}

// counters returns the idle and the whole time of a machine's cores.
//
//	the integral of mean + a sin(2 pi t / P) is mean t - a P / (2 pi) cos(2 pi t / P)
func (e *Exporter) counters(m *machine, now time.Time) (idle, total float64) {
	elapsed := now.Sub(m.since).Seconds()
	swing := amplitude(m.load.CPU) * e.period.Seconds() / (2 * math.Pi) * (math.Cos(e.phase(m.since)) - math.Cos(e.phase(now)))
	used := m.load.CPU.Mean*elapsed + swing
	return m.idle + cores*(elapsed-used), m.total + cores*elapsed
}

// ServeHTTP answers a scrape.
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
		// A machine that is busy is not all in one mode, and one that is idle not
		// all in idle.
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"idle\"} %.9f\n", cpu, idle/cores*0.95)
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"iowait\"} %.9f\n", cpu, idle/cores*0.05)
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"user\"} %.9f\n", cpu, (total-idle)/cores*0.7)
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"%d\",mode=\"system\"} %.9f\n", cpu, (total-idle)/cores*0.3)
	}
	fmt.Fprintf(w, "# TYPE node_memory_MemTotal_bytes gauge\nnode_memory_MemTotal_bytes %d\n", int64(memoryBytes))
	fmt.Fprintf(w, "# TYPE node_memory_MemAvailable_bytes gauge\nnode_memory_MemAvailable_bytes %.0f\n", memoryBytes*(1-memory))
	fmt.Fprintf(w, "# TYPE node_uname_info gauge\nnode_uname_info{nodename=%q} 1\n", name)
}
