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
	for name, tc := range map[string]struct {
		additive   bool
		configured []Prioritizer
		want       []string // name x weight
	}{
		"defaults":    {true, nil, []string{"Balance x 1", "Steady x 1"}},
		"exact, none": {false, nil, nil},
		"additive": {
			true, []Prioritizer{{Kind: v1beta1.ResourceRatioCPU, Weight: 2}}, []string{"Balance x 1", "Steady x 1", "ResourceRatioCPU x 2"},
		},
		"exact":       {false, []Prioritizer{{Kind: v1beta1.ResourceRatioCPU, Weight: 2}}, []string{"ResourceRatioCPU x 2"}},
		"default off": {true, []Prioritizer{{Kind: v1beta1.Balance}}, []string{"Steady x 1"}},
		"default changed": {
			true,
			[]Prioritizer{{Kind: v1beta1.ResourceAllocatableMemory, Weight: -10}, {Kind: v1beta1.Steady, Weight: 3}},
			[]string{"Balance x 1", "ResourceAllocatableMemory x -10", "Steady x 3"},
		},
		"all kinds": {
			false,
			[]Prioritizer{
				{Kind: v1beta1.Balance, Weight: 1},
				{Kind: v1beta1.Steady, Weight: 1},
				{Kind: v1beta1.ResourceRatioCPU, Weight: 1},
				{Kind: v1beta1.ResourceRatioMemory, Weight: 1},
				{Kind: v1beta1.ResourceAllocatableCPU, Weight: 1},
				{Kind: v1beta1.ResourceAllocatableMemory, Weight: 1},
				addOn("plimsoll", "cpu", 1),
			},
			[]string{
				"Balance x 1", "Steady x 1", "ResourceRatioCPU x 1", "ResourceRatioMemory x 1",
				"ResourceAllocatableCPU x 1", "ResourceAllocatableMemory x 1", "AddOn/plimsoll/cpu x 1",
			},
		},
		"two scores of one resource": {
			false,
			[]Prioritizer{addOn("plimsoll", "cpu", 1), addOn("plimsoll", "memory", 2)},
			[]string{"AddOn/plimsoll/cpu x 1", "AddOn/plimsoll/memory x 2"},
		},
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
