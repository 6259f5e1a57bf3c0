package report

import (
	"strings"
	"testing"
)

// TestRecommendationIsFirst checks that the box comes first, and that only changed parts are not folded.
func TestRecommendationIsFirst(t *testing.T) {
	page := write(t, sample(t, 2, 5, 20))
	box, changed, folded := strings.Index(page, `<section class="summary"`), strings.Index(page, "Clearly better"), strings.Index(page,
		`<details class="part">`)
	if box < 0 || box > changed || changed > folded {
		t.Errorf("box at %d, what changed at %d, folded parts at %d", box, changed, folded)
	}
}
