package scenarios

import (
	"strings"
	"testing"
)

// TestAll verifies that both halves have each data set with each kind and share, and the same families.
func TestAll(t *testing.T) {
	names, families := map[string]bool{}, map[Part]map[Family]int{Tuning: {}, Published: {}}
	for _, s := range All() {
		if names[s.Name] || strings.HasPrefix(s.Name, "tuning-") != (s.Part == Tuning) || s.Cluster.Set == "" || len(s.Families) != 3 {
			t.Errorf("%+v", s)
		}
		names[s.Name] = true
		for _, family := range s.Families {
			families[s.Part][family]++
		}
		if s.Is(BestEffort) != (s.Cluster.BestEffort > 0) {
			t.Errorf("%s: %v with a share of %v", s.Name, s.Families, s.Cluster.BestEffort)
		}
	}
	for part, count := range families {
		for _, family := range Families[1:] {
			if count[family] != 9 || count[BestEffort] != 18 {
				t.Errorf("%s: %v", part, count)
			}
		}
	}
	if !names["tuning-google-stay-be0"] || !names["planetlab-churn-be10"] || !names["bitbrains-rollout-be30"] {
		t.Errorf("%v", names)
	}
}
