package page

import (
	"slices"
	"strings"
	"testing"
)

// What comes from the cluster is text, whatever it looks like; bars are cut
// where the axis ends.
func TestWriteLive(t *testing.T) {
	const evil = `<script>alert("x")</script>`
	bar := LiveBar{
		Resource:        "cpu",
		Allocatable:     "8",
		Request:         "4",
		RequestFraction: 0.5,
		Limit:           "40",
		LimitFraction:   5,
		HasLoad:         true,
		LoadMean:        0.25,
		LoadStdDev:      0.05,
	}
	var page strings.Builder
	err := WriteLive(&page, Live{
		Running:   evil,
		Commands:  []LiveCommand{{evil, evil}},
		Nodes:     []LiveNode{{Name: evil, Bars: []LiveBar{bar}, Pods: []string{evil}}},
		Pending:   []LivePending{{evil, evil}},
		Profiles:  []LiveProfile{{evil, evil}},
		Policies:  &LivePolicies{Autoscaler: evil, Policies: []LivePolicy{{Name: evil, Message: evil}}},
		Decisions: []LiveDecision{{Pod: evil, Reason: evil, Default: evil, Scores: []LiveScore{{Node: evil, Detail: evil}}}},
		Results:   []LiveResult{{Pod: evil, Want: evil}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(page.String(), "<script>"); got != 1 {
		t.Errorf("%d scripts in the page, want its own only", got)
	}
	// The axis is twice what is allocatable: half of it requested is a quarter
	// of the bar, five times of it in limits are all of the bar and an arrow.
	for _, want := range []string{
		`class="request" style="width:25.00%"`, `class="limit" style="width:100.00%"`, `class="over"`,
		`left:10.00%;width:5.00%`, "request 4 (50\u00a0%), limit 40 (500\u00a0%), load 25\u00a0% &#177; 5\u00a0%",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if err := WriteLive(&page, Live{}); err != nil {
		t.Errorf("an empty view: %v", err)
	}
}

// TestScores checks that nodes on which a pod does not fit are counted, or named if it is one.
func TestScores(t *testing.T) {
	fits := LiveScore{Node: "a", Total: 4}
	one, two := LiveScore{Node: "b", Detail: "does not fit"}, LiveScore{Node: "c", Detail: "does not fit"}
	for want, scores := range map[string][]LiveScore{
		"": {fits}, "b does not fit": {one, fits}, "2 nodes do not fit": {one, fits, two},
	} {
		if got := misfits(scores); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := fitting(scores); len(got) != 1 || got[0] != fits {
			t.Errorf("%v fit, want %v", got, fits)
		}
	}
}

// TestPairs checks that the results for a pod are in one row, whichever came first, and that a result without its
// counterpart is not lost.
func TestPairs(t *testing.T) {
	got := pairs([]LiveResult{
		{Scenario: "a", Pod: "x", Node: "n1", OK: true},
		{Scenario: "a", Profile: "p", Pod: "x", Node: "n2", Want: "n3", Ours: true},
		{Scenario: "b", Profile: "v1", Pod: "x", Node: "c1", OK: true, Ours: true},
		{Scenario: "b", Profile: "v2", Pod: "x", Node: "c1", OK: true, Ours: true},
	})
	want := []resultPair{
		{"a", "x", "n1", "n2", "p", "n3", false}, {"b", "x", "–", "c1", "v1", "", true}, {"b", "x", "–", "c1", "v2", "", true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestOwn checks that the user's latest pods are first, and no pod of a scenario.
func TestOwn(t *testing.T) {
	got := own([]LiveDecision{{Pod: "4"}, {Pod: "s", Scenario: "limits"}, {Pod: "3"}, {Pod: "2"}, {Pod: "1"}})
	if len(got) != maxOwn || got[0].Pod != "4" || got[2].Pod != "2" {
		t.Errorf("%+v", got)
	}
}
