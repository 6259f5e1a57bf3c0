package shadow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// MeasuredOutcomes has outcomes over all pods that were measured, not computed. A nil value was not measured.
type MeasuredOutcomes struct {
	// ThrottledSeconds is the time for which containers were throttled at their limits.
	ThrottledSeconds *float64 `json:"throttledSeconds,omitempty"`
	// CPUPressureSeconds and MemoryPressureSeconds are the time, summed over nodes, in which some task waited for CPU or for memory
	// (pressure stall information).
	CPUPressureSeconds    *float64 `json:"cpuPressureSeconds,omitempty"`
	MemoryPressureSeconds *float64 `json:"memoryPressureSeconds,omitempty"`
	// Missing states why values are nil.
	Missing []string `json:"missing,omitempty"`
}

// outcomes are the values of MeasuredOutcomes, each with its name, and with the counter of the kubelets that has it and a matcher
// for its series.
var outcomes = []struct {
	name, counter, matcher string
	field                  func(*MeasuredOutcomes) **float64
}{
	{
		"Throttled at limits, s", "container_cpu_cfs_throttled_seconds_total", `container!=""`,
		func(f *MeasuredOutcomes) **float64 { return &f.ThrottledSeconds },
	},
	{
		"Waiting for CPU (pressure), node s", "container_pressure_cpu_waiting_seconds_total", `id="/"`,
		func(f *MeasuredOutcomes) **float64 { return &f.CPUPressureSeconds },
	},
	{
		"Waiting for memory (pressure), node s", "container_pressure_memory_waiting_seconds_total", `id="/"`,
		func(f *MeasuredOutcomes) **float64 { return &f.MemoryPressureSeconds },
	},
}

// Measure sets all values. increase returns the increase of the counters with a name that match, nil if there are none.
func (f *MeasuredOutcomes) Measure(increase func(counter, matcher string) (*float64, error)) {
	for _, o := range outcomes {
		value, err := increase(o.counter, o.matcher)
		switch {
		case err != nil:
			f.Missing = append(f.Missing, fmt.Sprintf("%s: %v", o.counter, err))
		case value == nil:
			f.Missing = append(f.Missing, o.counter+": the server has no such series")
		default:
			*o.field(f) = value
		}
	}
}

// add adds what another window measured.
func (f *MeasuredOutcomes) add(other *MeasuredOutcomes) {
	for _, o := range outcomes {
		sum, value := o.field(f), *o.field(other)
		switch {
		case value == nil:
		case *sum == nil:
			*sum = new(*value)
		default:
			**sum += *value
		}
	}
	f.Missing = addMissing(f.Missing, other.Missing)
}

// addMissing adds texts to others, each once and at most result.MaxOverloaded.
func addMissing(all, texts []string) []string {
	for _, text := range texts {
		if !slices.Contains(all, text) && len(all) < result.MaxOverloaded {
			all = append(all, text)
		}
	}
	return all
}

// Measurements returns what was measured besides overload, and why the rest is missing.
func (r *Report) Measurements() []string {
	out := []string{"Containers killed for their memory: " + number(float64(r.MemoryKills))}
	var unknown []string
	for _, o := range outcomes {
		if value := *o.field(&r.Outcomes); value != nil {
			out = append(out, o.name+": "+number(math.Round(*value)))
		} else {
			unknown = append(unknown, o.name)
		}
	}
	if unknown = append(unknown, r.Outcomes.Missing...); len(unknown) > 0 {
		out = append(out, "Not measured: "+strings.Join(unknown, "; "))
	}
	return out
}
