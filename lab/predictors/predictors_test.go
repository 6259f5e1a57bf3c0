package main

import (
	"math"
	"testing"
)

// Two machines use 1 and 3 for a day, and 4 and 7 in one step of it (the sum is 11 then, 4 otherwise).
func twoMachines(memory bool) *node {
	a, b := make([]float64, perDay), make([]float64, perDay)
	for i := range a {
		a[i], b[i] = 1, 3
	}
	a[9], b[9] = 4, 7
	n := &node{}
	n.add(a, 10, memory)
	n.add(b, 20, memory)
	return n
}

// TestPredictors works the predictions after a day out by hand. 287 of 288 values are 1 and 3: all quantiles up to 0.99 are.
func TestPredictors(t *testing.T) {
	// The means are 1 + 3/288 and 3 + 4/288. The sum has the mean 4 + 7/288, and a variance of 49 x 287/288^2.
	mean, deviation := 4+7.0/288, 7*math.Sqrt(287)/288
	// The maxima are 4 - 1 - 3/288 and 7 - 3 - 4/288 above the means, 861/288 and 1148/288.
	d, e := 861.0/288, 1148.0/288
	for name, want := range map[string]float64{
		"last value": 4,
		"Borg default, 0.9 of what is provisioned": 27,
		"RC-like, a day":                           4,
		"N-sigma, a day":                           mean + 5*deviation,
		"maximum of the node, a day":               11,
		"Vertical Pod Autoscaler, sum of machines": 1.15 * 4,
		"Koordinator, percentile of the node":      1.1 * 4,
		"means, and maxima of machines in 28 days": mean + math.Sqrt(0.7*(d*d+e*e)+0.3*(d+e)*(d+e)),
	} {
		found := false
		for _, p := range others {
			if p.name == name {
				found = true
				if got := p.predict(twoMachines(false), perDay); math.Abs(got-want) > 1e-9 {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
			}
		}
		if !found {
			t.Errorf("no predictor %q", name)
		}
	}
	// Memory: the peaks of the day are 4 and 7, 15 % more.
	if got, want := twoMachines(true).vpa(perDay), 1.15*11; math.Abs(got-want) > 1e-9 {
		t.Errorf("Vertical Pod Autoscaler, memory: %v, want %v", got, want)
	}
}

// TestDecayedQuantile has weights 1/4, 1/2 and 1 for 3, 1 and 2: below 1/2 of the sum, 0.875, are 1 (0.5) and 2 (1.5).
func TestDecayedQuantile(t *testing.T) {
	for q, want := range map[float64]float64{0.25: 1, 0.5: 2, 0.9: 3} {
		if got := decayedQuantile([]float64{3, 1, 2}, q, 1); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}

// TestOutcome has predictions 1 for 2, 3 for 2 and 8 for 4: one of three is missed, by half of the peak; the ratio is 12 / 8.
func TestOutcome(t *testing.T) {
	o := outcome{ratios: []float64{0.5, 1.5, 2}, predicted: 12, peaks: 8}
	if got, want := o.scaledBy(1), (result{1.0 / 3, 0.5 / 3, 1.5}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	// Twice as much: 1, 3 and 4 times the peak.
	if got, want := o.scaledTo(3), (result{0, 0, 3}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
