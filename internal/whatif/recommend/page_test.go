package recommend

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestDocument verifies that a page has the sentence, a chart for each figure that is judged, and all rows, with texts escaped, and what to
// apply only if the answer is confirmed.
func TestDocument(t *testing.T) {
	r := &Result{
		Saving:      "Saves <half>",
		CostUnit:    "CPU hours of nodes",
		Verdict:     result.Verdict{Sentence: "Use <packed>."},
		WaitPercent: 99,
		Reached:     true,
		Missed:      []string{"overload 9"},
		Frontier: []Row{
			{Name: "packed", Mark: "recommended", Cost: 96, Overload: 1, WaitSeconds: 4}, {Name: "default", Mark: "in force", Cost: 192},
		},
	}
	for percent, charts := range map[float64]int{99: 2, 0: 1} {
		r.WaitPercent, r.Confirmed = percent, percent > 0
		d, err := r.Document(false)
		must.Succeed(t, err)
		var out bytes.Buffer
		must.Succeed(t, d.Write(&out))
		page := out.String()
		if got := strings.Count(page, "<svg"); got != charts {
			t.Errorf("p%v: %d charts, want %d", percent, got, charts)
		}
		if applies, warns := strings.Contains(page, "What to apply"), strings.Contains(
			page,
			`class="summary warning"`,
		); applies != r.Confirmed ||
			warns == r.Confirmed {
			t.Errorf("confirmed %v: what to apply %v, warning %v", r.Confirmed, applies, warns)
		}
		if _, err := r.Manifests(); (err == nil) != r.Confirmed ||
			err != nil && !strings.HasSuffix(err.Error(), "on the last third overload 9") {
			t.Errorf("confirmed %v: %v", r.Confirmed, err)
		}
		for _, want := range []string{"<h2>Saves &lt;half&gt;</h2><p>Use &lt;packed&gt;.", ">CPU h/day<", `<td class="n">96</td>`, `<td class="n">192</td>`, ">recommended: packed<"} {
			if !strings.Contains(page, want) {
				t.Errorf("p%v: the page lacks %s", percent, want)
			}
		}
	}
}
