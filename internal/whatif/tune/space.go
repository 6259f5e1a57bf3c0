package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/plugins"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourceslimits"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

// The plugins of kube-scheduler whose weights and arguments are searched.
const (
	fitPlugin      = "NodeResourcesFit"
	balancedPlugin = "NodeResourcesBalancedAllocation"
)

// Dimension is the weight or an argument of a plugin, with the values to try.
type Dimension struct {
	// Plugin is the name of the plugin, Argument the name of its argument, empty for the weight of its score.
	Plugin, Argument string
	// Values in the order of the search, which goes from a value to its neighbors. Weights are of type int, with 0 for a
	// plugin that does not score; arguments are of type float64 or string.
	Values []any
	// label of a setting for people.
	label string
}

// Space has all dimensions. The weight of a plugin precedes its arguments. Other plugins and arguments are those of the
// configuration in force. The constraints of PodTopologySpread are not among them: what spreading over nodes and zones is
// for, surviving their failure, is no figure of a simulation.
var Space = newSpace()

func newSpace() []Dimension {
	space := []Dimension{
		{Plugin: fitPlugin, Values: []any{0, 1, 2}, label: "fit"},
		{Plugin: fitPlugin, Argument: "scoringStrategy.type", Values: []any{"LeastAllocated", "MostAllocated"}},
		{Plugin: balancedPlugin, Values: []any{0, 1, 2}, label: "balanced"},
	}
	for _, p := range plugins.All {
		space = append(space, Dimension{Plugin: p.Name, Values: p.Weights, label: p.Label})
		if a := p.Argument; a != nil {
			space = append(space, Dimension{Plugin: p.Name, Argument: a.Name, Values: a.Values, label: a.Label})
		}
	}
	return space
}

// Plugins returns the names of the plugins in the space.
func Plugins() []string {
	var names []string
	for _, dimension := range Space {
		if dimension.Argument == "" {
			names = append(names, dimension.Plugin)
		}
	}
	return names
}

// maxDimensions is the highest number of dimensions.
const maxDimensions = 16

// Point has the index of a value in each dimension, and 0 beyond the last one.
type Point [maxDimensions]int

// value returns the value of a point in a dimension.
func (p Point) value(d int) any { return Space[d].Values[p[d]] }

// weight returns the weight of a plugin.
func (p Point) weight(plugin string) int {
	d := slices.IndexFunc(Space, func(d Dimension) bool { return d.Plugin == plugin && d.Argument == "" })
	return p.value(d).(int)
}

// matters reports whether a dimension has an effect at a point: the arguments of a plugin that does not score have none.
func (p Point) matters(d int) bool { return Space[d].Argument == "" || p.weight(Space[d].Plugin) != 0 }

// scores reports whether any plugin scores at a point.
func (p Point) scores() bool {
	for d := range Space {
		if Space[d].Argument == "" && p.value(d) != 0 {
			return true
		}
	}
	return false
}

// String returns the settings that have an effect, such as "fit 1, balanced 1, predicted 5 (deviations 0.5)".
func (p Point) String() string {
	var parts []string
	for d, dimension := range Space {
		if dimension.Argument != "" || p.value(d) == 0 {
			continue
		}
		part := fmt.Sprint(dimension.label, " ", p.value(d))
		var arguments []string
		for a, argument := range Space {
			if argument.Plugin == dimension.Plugin && argument.Argument != "" {
				arguments = append(arguments, strings.TrimSpace(fmt.Sprint(argument.label, " ", p.value(a))))
			}
		}
		if len(arguments) > 0 {
			part += " (" + strings.Join(arguments, ", ") + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// region is the part of the space that is searched.
type region struct {
	// center is the point of the configuration in force. Dimensions that are not free keep its values.
	center Point
	free   [maxDimensions]bool
}

// newRegion returns the region in which the dimensions of excluded plugins are not free.
func newRegion(center Point, excluded []string) region {
	r := region{center: center}
	for d := range Space {
		r.free[d] = !slices.Contains(excluded, Space[d].Plugin)
	}
	return r
}

// normal returns the point with the values of the center in dimensions that have no effect, so that points with the same effect are
// equal, and whether it is in the region.
func (r region) normal(p Point) (Point, bool) {
	for d := range Space {
		if !p.matters(d) {
			p[d] = r.center[d]
		}
		if !r.free[d] && p[d] != r.center[d] {
			return p, false
		}
	}
	return p, p.scores()
}

// neighbors returns the points that differ from a point by one step in one dimension, in the order of dimensions.
func (r region) neighbors(p Point) []Point {
	var near []Point
	for d := range Space {
		for _, step := range []int{-1, 1} {
			q := p
			q[d] += step
			if !p.matters(d) || q[d] < 0 || q[d] >= len(Space[d].Values) {
				continue
			}
			if q, ok := r.normal(q); ok {
				near = append(near, q)
			}
		}
	}
	return near
}

// size returns the number of points of the region.
func (r region) size() int {
	count, withoutScore := 1, true
	for d := range Space {
		if Space[d].Argument != "" {
			continue
		}
		// Without a score a plugin has one point; with a score it has one point for each weight and combination of its arguments.
		arguments := 1
		for a := range Space {
			if Space[a].Plugin == Space[d].Plugin && Space[a].Argument != "" {
				arguments *= len(Space[a].Values)
			}
		}
		if r.free[d] {
			count *= 1 + (len(Space[d].Values)-1)*arguments
		} else if r.center.value(d) != 0 {
			withoutScore = false
		}
	}
	if withoutScore {
		count-- // the point at which no plugin scores
	}
	return count
}

// nearest returns the index of the value of a dimension that is nearest to a given value, 0 for a text that is not in the dimension.
func nearest(dimension Dimension, value any) int {
	if text, ok := value.(string); ok {
		return max(slices.Index(dimension.Values, any(text)), 0)
	}
	best := 0
	for i := range dimension.Values {
		if math.Abs(number(dimension.Values[i])-number(value)) < math.Abs(number(dimension.Values[best])-number(value)) {
			best = i
		}
	}
	return best
}

// number returns a weight or a numeric argument.
func number(value any) float64 {
	if weight, ok := value.(int); ok {
		return float64(weight)
	}
	v, _ := value.(float64)
	return v
}

// combinations are starting points in addition to the built-in profiles, as weights of plugins. Plugins that are not listed do not score.
var combinations = []map[string]int{
	{balancedPlugin: 1, noderesourceslimits.Name: 1, predictedutilization.Name: 5},
	{fitPlugin: 1, balancedPlugin: 1, lowriskovercommitment.Name: 2, predictedutilization.Name: 5},
	{predictedutilization.Name: 5},
}

// startPoints returns the points of the built-in profiles and of combinations of their plugins.
func startPoints() ([]Point, error) {
	var points []Point
	for _, name := range engine.BuiltInProfiles {
		read, err := engine.ReadConfig(name)
		if err != nil {
			return nil, err
		}
		c, err := newCurrent(read)
		if err != nil {
			return nil, err
		}
		points = append(points, c.point)
	}
	plain := points[slices.Index(engine.BuiltInProfiles, "default")]
	for _, weights := range combinations {
		p := plain
		for d, dimension := range Space {
			if dimension.Argument == "" {
				p[d] = nearest(dimension, weights[dimension.Plugin])
			}
		}
		points = append(points, p)
	}
	return points, nil
}
