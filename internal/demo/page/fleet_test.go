package page

import (
	"reflect"
	"strings"
	"testing"
)

// The axis is from -100 to 300, so 100 are 25 % of it, and 0 is at 25 %. What
// adds goes to the right of that, what takes away to the left, in the order of the
// prioritizers; what is 0 is not drawn. A piece of less than 16 % has no label.
func TestNewStack(t *testing.T) {
	parts := func(balance, cpu, free int64) []LivePart {
		return []LivePart{
			{"Balance", 1, balance, false},
			{"ResourceAllocatableCPU", 2, cpu, false},
			{"AddOn/x/free", -1, free, free == 100},
		}
	}
	s := newStack(LivePlacement{Clusters: []LiveCluster{
		{Name: "a", Total: 300, Parts: parts(100, 100, 0)},
		{Name: "b", Total: 50, Parts: parts(50, -20, -40)},
		{Name: "c", Total: -60, Parts: parts(0, 20, 100)},
		{Name: "d", Reason: "its taint"},
	}})
	want := [][]stackPiece{
		{
			{0, 25, 25, 37.5, "+100", "Balance: 1 x 100 = +100"},
			{4, 50, 50, 75, "+200", "ResourceAllocatableCPU: 2 x 100 = +200"},
		},
		{
			{0, 25, 12.5, 31.25, "", "Balance: 1 x 50 = +50"},
			{4, 15, 10, 20, "", "ResourceAllocatableCPU: 2 x -20 = -40"},
			{6, 37.5, 10, 42.5, "", "AddOn/x/free: -1 x -40 = +40"},
		},
		{
			{4, 25, 10, 30, "", "ResourceAllocatableCPU: 2 x 20 = +40"},
			{6, 0, 25, 12.5, "-100", "AddOn/x/free: -1 x 100 = -100 (no data)"},
		},
		nil,
	}
	for i, row := range s.Rows {
		if !reflect.DeepEqual(row.Pieces, want[i]) {
			t.Errorf("%s: %+v, want %+v", row.Name, row.Pieces, want[i])
		}
	}
	for what, tc := range map[string]struct{ got, want any }{
		"zero":  {s.Zero, 25.0},
		"sums":  {[]float64{s.Rows[0].Sum, s.Rows[1].Sum, s.Rows[2].Sum}, []float64{100, 37.5, 10}},
		"ticks": {s.Ticks, []stackTick{{0, "-100", "start"}, {25, "0", "middle"}, {50, "100", "middle"}, {75, "200", "middle"}, {100, "300", "end"}}},
		"keys":  {s.Keys, []stackKey{{0, "Balance", 1}, {4, "ResourceAllocatableCPU", 2}, {6, "AddOn/x/free", -1}}},
	} {
		if !reflect.DeepEqual(tc.got, tc.want) {
			t.Errorf("%s: %+v, want %+v", what, tc.got, tc.want)
		}
	}
}

// Whatever the scores, everything is on the axis, and it has a handful of marks.
func TestNewStackStaysOnTheAxis(t *testing.T) {
	for _, score := range []int64{0, 1, -1, 7, -100, 100, 1 << 40, -1 << 40} {
		s := newStack(LivePlacement{Clusters: []LiveCluster{
			{Total: 10 * score, Parts: []LivePart{{"one", 10, score, false}}},
			{Total: -3 * score, Parts: []LivePart{{"two", -3, score, false}}},
		}})
		if s.Zero < 0 || s.Zero > 100 || len(s.Ticks) < 2 || len(s.Ticks) > 10 {
			t.Errorf("score %d: zero at %v, ticks %v", score, s.Zero, s.Ticks)
		}
		for _, row := range s.Rows {
			for _, piece := range row.Pieces {
				if piece.From < -0.001 || piece.Width < 0 || piece.From+piece.Width > 100.001 || row.Sum < -0.001 || row.Sum > 100.001 {
					t.Errorf("score %d: %+v, total at %v", score, piece, row.Sum)
				}
			}
		}
	}
}

// Prioritizers have colors of their own, wherever they are; add-ons beyond the
// colors there are share them.
func TestStackColors(t *testing.T) {
	parts := []LivePart{{Prioritizer: "Steady"}, {Prioritizer: "w"}, {Prioritizer: "x"}, {Prioritizer: "y"}, {Prioritizer: "z"}}
	s := newStack(LivePlacement{Clusters: []LiveCluster{{Parts: parts}, {Parts: parts}}})
	var colors []int
	for _, key := range s.Keys {
		colors = append(colors, key.Color)
	}
	if want := []int{1, 6, 7, 8, 6}; !reflect.DeepEqual(colors, want) {
		t.Errorf("colors %v, want %v", colors, want)
	}
}

// Names and reasons are text, in attributes too; a fleet without placements, and
// a placement of which nothing is known, are shown as such.
func TestFleetIsEscaped(t *testing.T) {
	const evil = `"></svg><script>alert("x")</script>`
	var page strings.Builder
	err := WriteLive(&page, Live{Fleet: &LiveFleet{Placements: []LivePlacement{
		{Name: evil, Message: evil, Clusters: []LiveCluster{
			{Name: evil, Chosen: true, Total: 100, Parts: []LivePart{{evil, 1, 100, true}}},
			{Name: "b", Reason: evil},
		}},
		{Name: "misconfigured"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(page.String(), "<script>"); got != 1 {
		t.Errorf("%d scripts in the page, want its own only", got)
	}
	if got := strings.Count(page.String(), `"></svg>`); got != 0 {
		t.Errorf("%d attributes are left by a name", got)
	}
	for _, want := range []string{`x="0.00%" width="100.00%"`, `<div class="chosen">`, `x1="0.00%"`, "misconfigured", "= +100 (no data)"} {
		if !strings.Contains(strings.ReplaceAll(page.String(), "&#43;", "+"), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	page.Reset()
	if err := WriteLive(&page, Live{Fleet: &LiveFleet{}}); err != nil || !strings.Contains(page.String(), "no placements") {
		t.Errorf("without placements: %v", err)
	}
}
