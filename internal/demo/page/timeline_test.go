package page

import (
	"reflect"
	"strings"
	"testing"
)

// Ten seconds are 896 units wide from 44 on, 89.6 each; 4 CPUs are the 160 from
// 190 up to 30, 40 each; 2 nodes the 40 from 254 up to 214, 20 each.
func TestDraw(t *testing.T) {
	c := draw(&LiveTimeline{
		Points: []TimelinePoint{
			{Seconds: 0, Waiting: 4},
			{Seconds: 2.5, Waiting: 1},
			{Seconds: 5, Target: 2, Available: 4, Nodes: 1},
			{Seconds: 7.5, Target: 2, Available: 1, Nodes: 2, Waiting: 1},
			{Seconds: 10, Target: 2, Available: 2, Nodes: 2},
		},
		Marks: []TimelineMark{{0, "begins"}, {5, "goes on"}, {5.15625, "and on"}},
	})
	for what, tc := range map[string]struct{ got, want any }{
		"target":    {c.Target, "M44.0 190.0H268.0V190.0H492.0V110.0H716.0V110.0H940.0V110.0"},
		"available": {c.Available, "M44.0 190.0H268.0V190.0H492.0V30.0H716.0V150.0H940.0V110.0V190.0H44.0Z"},
		"nodes":     {c.Nodes, "M44.0 254.0H268.0V254.0H492.0V234.0H716.0V214.0H940.0V214.0"},
		"waiting":   {c.Waiting, []span{{44, 448}, {716, 224}}},
		"grid":      {c.Grid, []tick{{190, "0"}, {150, "1"}, {110, "2"}, {70, "3"}, {30, "4"}}},
		"node grid": {c.NodeGrid, []tick{{254, "0"}, {234, "1"}, {214, "2"}}},
		"numbers":   {c.Numbers, []number{{44, 44, "1"}, {492, 492, "2"}, {506, 512, "3"}}},
		"end":       {c.Times[len(c.Times)-1], tick{940, "10"}},
	} {
		if !reflect.DeepEqual(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", what, tc.got, tc.want)
		}
	}
}

// The axis of time ends where the points do, whatever its steps.
func TestDrawTimes(t *testing.T) {
	c := draw(&LiveTimeline{Points: []TimelinePoint{{}, {Seconds: 31.5}}})
	if last := c.Times[len(c.Times)-1]; last.Label != "30" || last.At >= chartRight {
		t.Errorf("the last mark is %+v", last)
	}
	if draw(nil) != nil || draw(&LiveTimeline{Points: []TimelinePoint{{}}}) != nil {
		t.Error("drawn from nothing")
	}
}

// Texts of the timeline are escaped.
func TestTimelineIsEscaped(t *testing.T) {
	const evil = `</svg><script>alert("x")</script>`
	var page strings.Builder
	err := WriteLive(&page, Live{Timeline: &LiveTimeline{
		Unit: evil, Points: []TimelinePoint{{}, {Seconds: 1}}, Marks: []TimelineMark{{0, evil}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(page.String(), "<script>"); got != 1 {
		t.Errorf("%d scripts in the page, want its own only", got)
	}
	if !strings.Contains(page.String(), `class="target" d="M44.0 190.0`) {
		t.Error("the page has no line of the target")
	}
}
