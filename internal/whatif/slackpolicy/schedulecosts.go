package slackpolicy

import (
	"math"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// costLevels is the number of amounts of slack that schedules may have.
const costLevels = 48

// scheduleCosts has, for each class, the hours for which slack is held, and the number of pods that wait with each level.
type scheduleCosts struct {
	// units are the levels in ascending order, from 0.
	units []float64
	hours [classes]float64
	waits [classes][costLevels]float64
}

// newScheduleCosts returns the costs of levels at the quantiles of the needs, of levels with equal amounts the lowest.
func (s *search) newScheduleCosts() *scheduleCosts {
	sorted := make([]float64, 0, len(s.needs))
	for _, n := range s.needs {
		sorted = append(sorted, n.units)
	}
	slices.Sort(sorted)
	c := &scheduleCosts{units: []float64{0}, hours: s.hours}
	for i := 1; i < costLevels; i++ {
		// Quantiles are denser at the top: 1 - (1 - i/n)^2. The last level is a half above the highest need.
		rest := 1 - float64(i)/(costLevels-1)
		unit := sorted[min(int((1-rest*rest)*float64(len(sorted))), len(sorted)-1)]
		if i == costLevels-1 {
			unit *= 1.5
		}
		last := c.units[len(c.units)-1]
		if unit > last && (last == 0 || !apiequality.Semantic.DeepEqual(s.amount(unit), s.amount(last))) {
			c.units = append(c.units, unit)
		}
	}
	for _, n := range s.needs {
		for level, unit := range c.units {
			if n.units > unit {
				c.waits[n.class][level]++
			}
		}
	}
	return c
}

// days returns the units of slack of each class that cost least, with a number of segments of equal slack of each of the two days.
func (c *scheduleCosts) days(weight float64, segments int) (units [classes]float64) {
	for day := range 2 {
		copy(units[day*24:], c.day(day*24, weight, segments))
	}
	return units
}

// day divides the 24 classes from first into segments by dynamic programming.
func (c *scheduleCosts) day(first int, weight float64, segments int) []float64 {
	type choice struct {
		cost  float64
		start int
		unit  float64
	}
	// best[n][end] is the cheapest division of the hours before end into n segments.
	best := make([][25]choice, segments+1)
	for n := range best {
		for end := range best[n] {
			best[n][end].cost = math.Inf(1)
		}
	}
	best[0][0].cost = 0
	for start := range 24 {
		sums := make([]float64, len(c.units))
		for end := start + 1; end <= 24; end++ {
			cost, unit := math.Inf(1), 0.0
			for level := range sums {
				class := first + end - 1
				if sums[level] += c.units[level]*c.hours[class] + weight*c.waits[class][level]; sums[level] < cost {
					cost, unit = sums[level], c.units[level]
				}
			}
			for n := range segments {
				if total := best[n][start].cost + cost; total < best[n+1][end].cost {
					best[n+1][end] = choice{total, start, unit}
				}
			}
		}
	}
	units := make([]float64, 24)
	n := 1
	for i := 2; i <= segments; i++ {
		if best[i][24].cost < best[n][24].cost {
			n = i
		}
	}
	for end := 24; end > 0; n-- {
		chosen := best[n][end]
		for hour := chosen.start; hour < end; hour++ {
			units[hour] = chosen.unit
		}
		end = chosen.start
	}
	return units
}
