package decide

import (
	"fmt"
	"slices"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

func addOn(resource, score string, weight int32) Prioritizer {
	return Prioritizer{Kind: KindAddOn, Coordinate: v1beta1.AddOnScore{ResourceName: resource, ScoreName: score}, Weight: weight}
}

func TestEnabledPrioritizers(t *testing.T) {
	configured := []Prioritizer{
		{Kind: v1beta1.ResourceAllocatableMemory, Weight: -10}, {Kind: v1beta1.Steady, Weight: 3}, addOn("plimsoll", "cpu", 1),
	}
	for name, tc := range map[string]struct {
		additive   bool
		configured []Prioritizer
		want       []string // name x weight
	}{
		"defaults":    {true, nil, []string{"Balance x 1", "Steady x 1"}},
		"default off": {true, []Prioritizer{{Kind: v1beta1.Balance}}, []string{"Steady x 1"}},
		"added": {
			true, configured, []string{"Balance x 1", "ResourceAllocatableMemory x -10", "Steady x 3", "AddOn/plimsoll/cpu x 1"},
		},
		"exact": {false, configured, []string{"ResourceAllocatableMemory x -10", "Steady x 3", "AddOn/plimsoll/cpu x 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range EnabledPrioritizers(tc.additive, tc.configured) {
				got = append(got, fmt.Sprintf("%s x %d", p.Name(), p.Weight))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
