package load

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// put is one reading stored.
type put struct {
	at   time.Time
	lost map[Series]error
	node Node
}

func (p put) has(series ...Series) bool {
	for _, s := range series {
		if p.lost[s] != nil {
			return false
		}
	}
	return true
}

// expected returns the node that a store returns after the readings: each series of the newest reading that
// has it.
func expected(puts []put, now time.Time, maxAge time.Duration) Node {
	newest := func(value func(put) float64, series ...Series) (float64, bool) {
		for _, p := range slices.Backward(puts) {
			if p.has(series...) {
				return value(p), !now.After(p.at.Add(maxAge))
			}
		}
		return 0, false
	}
	var node Node
	if mean, ok := newest(func(p put) float64 { return p.node.CPU.Mean }, CPUMean); ok {
		node.CPU.Mean, node.HasCPU = mean, true
	}
	if deviation, ok := newest(func(p put) float64 { return p.node.CPU.StdDev }, CPUMean, CPUStdDev); ok && node.HasCPU {
		node.CPU.StdDev = deviation
	}
	if mean, ok := newest(func(p put) float64 { return p.node.Memory.Mean }, MemoryMean); ok {
		node.Memory.Mean, node.HasMemory = mean, true
	}
	if deviation, ok := newest(func(p put) float64 { return p.node.Memory.StdDev }, MemoryMean, MemoryStdDev); ok && node.HasMemory {
		node.Memory.StdDev = deviation
	}
	return node
}

// TestLostSeriesAreCarriedUntilTheyAreStale compares stores with expected: a lost series keeps its value until
// it is too old.
func TestLostSeriesAreCarriedUntilTheyAreStale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxAge = 5 * time.Minute
		c := &clock{noon}
		store := NewStore(maxAge, c.now)
		var puts []put
		for i := range rapid.IntRange(1, 8).Draw(t, "readings") {
			c.at = c.at.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds between readings")) * time.Second)
			p := put{at: c.at, lost: map[Series]error{}}
			for _, series := range AllSeries {
				if rapid.Bool().Draw(t, "lost "+string(series)) {
					p.lost[series] = errors.New("lost")
				}
			}
			fraction := float64(i+1) / 100
			p.node = Node{HasCPU: p.has(CPUMean), HasMemory: p.has(MemoryMean)}
			if p.has(CPUMean) {
				p.node.CPU.Mean = fraction
			}
			if p.has(CPUMean, CPUStdDev) {
				p.node.CPU.StdDev = fraction / 10
			}
			if p.has(MemoryMean) {
				p.node.Memory.Mean = fraction / 2
			}
			if p.has(MemoryMean, MemoryStdDev) {
				p.node.Memory.StdDev = fraction / 20
			}
			puts = append(puts, p)
			reading := Reading{Time: p.at, Lost: p.lost, Nodes: map[string]Node{}}
			if p.node.HasCPU || p.node.HasMemory {
				reading.Nodes["node"] = p.node
			}
			must.Succeed(t, store.Put(reading))
			for range 3 {
				before := c.at
				c.at = c.at.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds later")) * time.Second)
				got, _ := store.Fresh().Node("node")
				if want := expected(puts, c.at, maxAge); got != want {
					t.Fatalf("%s after the first reading: %+v, want %+v", c.at.Sub(noon), got, want)
				}
				c.at = before
			}
		}
	})
}
