package scenarios

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// TestAll verifies that every scenario is valid, that the halves are equally large and have the same clusters, and that each
// family is in both.
func TestAll(t *testing.T) {
	names, shapes := map[string]bool{}, map[Part]map[string]int{Tuning: {}, Published: {}}
	counts, families := map[Part]int{}, map[Part]map[Family]int{Tuning: {}, Published: {}}
	for _, s := range All() {
		if names[s.Name] {
			t.Errorf("%s occurs twice", s.Name)
		}
		names[s.Name] = true
		shapes[s.Part][s.Limits+s.Name[strings.LastIndex(s.Name, "-"):]]++
		counts[s.Part]++
		for _, family := range s.Families {
			families[s.Part][family]++
		}
		if s.Is(BestEffort) == s.Is(NoBestEffort) || s.Is(Churn) == s.Is(NoChurn) || s.CPUSeconds <= 0 {
			t.Errorf("%+v", s)
		}
		if s.Generate != "" {
			if _, err := recording.ParseGenerated(s.Generate); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		shape, err := recording.ParseUsage(s.Usage)
		if err == nil {
			_, err = recording.NewUsage(shape, 1)
		}
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if counts[Tuning] != 20 || counts[Published] != 20 {
		t.Errorf("numbers of scenarios %v", counts)
	}
	if len(shapes[Tuning]) != 8 || len(shapes[Published]) != 8 {
		t.Errorf("combinations of limits and usage %v, want all in each half", shapes)
	}
	for _, family := range Families {
		if families[Tuning][family] == 0 || families[Published][family] == 0 {
			t.Errorf("family %q: %d tuning scenarios and %d published ones", family, families[Tuning][family], families[Published][family])
		}
	}
}

// TestReal verifies that both halves have each data set with each kind and share, and the same families.
func TestReal(t *testing.T) {
	names, families := map[string]bool{}, map[Part]map[Family]int{Tuning: {}, Published: {}}
	for _, s := range Real() {
		if names[s.Name] || strings.HasPrefix(s.Name, "tuning-") != (s.Part == Tuning) || s.Real == nil || len(s.Families) != 3 {
			t.Errorf("%+v", s)
		}
		names[s.Name] = true
		for _, family := range s.Families {
			families[s.Part][family]++
		}
		if s.Is(RealBestEffort) != (s.Real.BestEffort > 0) {
			t.Errorf("%s: %v with a share of %v", s.Name, s.Families, s.Real.BestEffort)
		}
	}
	for part, count := range families {
		for _, family := range RealFamilies[1:] {
			if count[family] != 9 || count[RealBestEffort] != 18 {
				t.Errorf("%s: %v", part, count)
			}
		}
	}
	if !names["tuning-google-stay-be0"] || !names["planetlab-churn-be10"] || !names["bitbrains-rollout-be30"] {
		t.Errorf("%v", names)
	}
}
