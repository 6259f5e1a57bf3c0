package tune

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

// combinations are starting points in addition to the built-in profiles, as weights of plugins. Plugins that are not listed do not score.
var combinations = []map[string]int{
	{balancedPlugin: 1, limitsPlugin: 1, predictedPlugin: 5},
	{fitPlugin: 1, balancedPlugin: 1, lowRiskPlugin: 2, predictedPlugin: 5},
	{predictedPlugin: 5},
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
