package report

import (
	"strings"
	"testing"
)

// TestRecommendationIsFirst checks that the box comes first, and that only changed parts are not folded.
func TestRecommendationIsFirst(t *testing.T) {
	page := write(t, sample(t, 1, 2, 5, 20))
	box, changed, folded := strings.Index(page, `<section class="summary"`), strings.Index(page, "Clearly better"), strings.Index(page,
		`<details class="part">`)
	if box < 0 || box > changed || changed > folded {
		t.Errorf("box at %d, what changed at %d, folded parts at %d", box, changed, folded)
	}
}

func TestWords(t *testing.T) {
	for spec, want := range map[string][2]string{
		"cpu=bursts:mean=0.7,max=4,between=0,hold=10;memory=bursts:mean=0.7,max=4,between=0,hold=10": {
			"CPU and memory bursts, mean 0.7 of the request, at most 4 times the request, changes every 10 min", "bursts",
		},
		"cpu=bursts:mean=0.4;memory=bursts": {"CPU bursts, mean 0.4 of the request; memory bursts", "bursts"},
		"cpu=beta:mean=0.4;memory=constant": {"CPU beta, mean 0.4 of the request; memory constant", "cpu beta, memory constant"},
		"beta:mean=0.4":                     {"beta:mean=0.4", "beta:mean=0.4"},
		"":                                  {},
		"cpu=diurnal:amplitude=0.5":         {"CPU diurnal, amplitude=0.5", "cpu diurnal"},
	} {
		if words, shapes := usageWords(spec); words != want[0] || shapes != want[1] {
			t.Errorf("%q: %q, %q, want %q", spec, words, shapes, want)
		}
	}
	for spec, want := range map[string]string{"ratio=2": "2 times the requests", "ratio=1+2": "1 or 2 times the requests", "cpu=2,memory=1": "cpu=2,memory=1", "": ""} {
		if got := limitWords(spec); got != want {
			t.Errorf("%q: %q, want %q", spec, got, want)
		}
	}
}
