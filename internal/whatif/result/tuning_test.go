package result

import (
	"slices"
	"testing"
)

// TestRanked verifies the order of candidates: by the difference from the first candidate.
func TestRanked(t *testing.T) {
	s := &Search{Candidates: []Candidate{
		{Settings: "current", Seeds: 4},
		{Settings: "worse", Seeds: 4, Difference: new(3.0)},
		{Settings: "not simulated"},
		{Settings: "better", Seeds: 4, Difference: new(-2.0)},
	}}
	var names []string
	for _, c := range s.Ranked() {
		names = append(names, c.Settings)
	}
	if want := []string{"better", "current", "worse"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
}
