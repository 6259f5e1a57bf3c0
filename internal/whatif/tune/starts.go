package tune

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourceslimits"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

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
