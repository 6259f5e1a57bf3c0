package node

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Values from the cluster are escaped, whatever they contain; bars are cut
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
	err := writeLive(&page, Live{
		Running:   evil,
		Commands:  []LiveCommand{{evil, evil}},
		Nodes:     []LiveNode{{Name: evil, Bars: []LiveBar{bar, {Request: "1"}, {Request: "2", UnboundedPods: 2}}, Pods: []string{evil}}},
		Pending:   []LivePending{{evil, evil}},
		Profiles:  []LiveProfile{{evil, evil}},
		Decisions: []LiveDecision{{Pod: evil, Reason: evil, Default: evil, Scores: []LiveScore{{Node: evil}}}},
	})
	must.Succeed(t, err)
	if got := strings.Count(page.String(), "<script"); got != 1 {
		t.Errorf("%d scripts in the page, want its own only", got)
	}
	// The axis is twice the allocatable amount: requests of half of allocatable are
	// a quarter of the bar, limits of five times allocatable the whole bar and an arrow.
	for _, want := range []string{
		`class="request" style="width:25.00%"`, `class="limit" style="width:100.00%"`, `class="over"`,
		`left:10.00%;width:5.00%`, "request 4 (50\u00a0%), limit 40 (500\u00a0%), load 25\u00a0% &#177; 5\u00a0%",
		"request 1 (0\u00a0%), no limits<", "no limits, 2 pods without a limit, which may use the whole node<", `rel="icon" href="data:`,
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if err := writeLive(&page, Live{}); err != nil {
		t.Errorf("an empty view: %v", err)
	}
}
