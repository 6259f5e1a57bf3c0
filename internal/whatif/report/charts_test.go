package report

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// addSlack adds an autoscaler with an amount of slack to each profile of a result. Each profile costs 1
// more than the previous profile, and pods wait 10 s less.
func addSlack(t *testing.T, r *result.Result, names ...string) {
	t.Helper()
	r.Settings.Autoscaler = &result.Autoscaler{Groups: []string{"name=" + markup}, Priced: true}
	for i := range r.Scenario.Profiles {
		p := &r.Scenario.Profiles[i]
		p.Slack = names[i]
		for j := range p.Runs {
			p.Runs[j].PendingSeconds.Mean = 100 - 10*float64(i) + float64(j)
			p.Runs[j].Scaling = &result.Scaling{Cost: 20 + float64(i) + 0.1*float64(j), NodeHours: 40, Slack: &result.SlackKept{Mean: 0.5}}
		}
	}
	r.Scenario.Compare()
}

// TestFrontier checks a frontier whose first point has costs of 20, 20.1 and 20.2 and pending times of
// 100, 101 and 102 s: t with 2 degrees of freedom is 4.303, and 4.303 x 0.1 / sqrt 3 = 0.248.
func TestFrontier(t *testing.T) {
	r := sample(t, 2, 3, 10)
	addSlack(t, r, "0%", markup)
	page := write(t, r)
	read := text(t, page)
	for _, want := range []string{
		"Cost and benefit of slack", "cost of nodes", "20.1 (19.", "101", "91", markup,
		"50" + format.ThinSpace + "%", "Autoscaler node groups", "slack available, mean fraction",
	} {
		if !strings.Contains(read, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if found := external.FindString(page); found != "" {
		t.Errorf("found %q", found)
	}
	if again := write(t, r); again != page {
		t.Error("the report of the same result has different bytes")
	}
}

// TestNoFrontier checks that a result without slack, or with one amount of slack, has no frontier.
func TestNoFrontier(t *testing.T) {
	r := sample(t, 2, 3, 10)
	if read := text(t, write(t, r)); strings.Contains(read, "Cost and benefit of slack") || strings.Contains(read, "slack kept") ||
		strings.Contains(read, "Autoscaler") {
		t.Error("a report without an autoscaler mentions slack")
	}
	addSlack(t, r, "10%", "")
	if read := text(t, write(t, r)); strings.Contains(read, "Cost and benefit of slack") ||
		!strings.Contains(read, "slack available, mean fraction") {
		t.Error("a report with one amount of slack has a frontier, or lacks the figures of slack")
	}
}

// TestCostChartIsFinite checks that all coordinates are finite for any figures.
func TestCostChartIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		figure := anyFloat()
		interval := rapid.Custom(func(t *rapid.T) *result.Interval {
			if rapid.Bool().Draw(t, "one seed") {
				return nil
			}
			return &result.Interval{Low: figure.Draw(t, "low"), High: figure.Draw(t, "high")}
		})
		var points []CostPoint
		for range rapid.IntRange(2, 6).Draw(t, "points") {
			points = append(points, CostPoint{
				Cost: figure.Draw(t, "cost"), Value: figure.Draw(t, "value"), Label: "5%", Line: "p",
				CostInterval: interval.Draw(t, "of cost"), ValueInterval: interval.Draw(t, "of value"),
			})
		}
		drawn := string(CostChart("cost", "wait", points).SVG)
		if strings.Contains(drawn, "NaN") || strings.Contains(drawn, "Inf") || strings.Count(drawn, "<circle") != len(points) {
			t.Fatal(drawn)
		}
	})
}

// TestMark expects a star only for differences that are significant and at least 0.5 % of the first profile's value.
func TestMark(t *testing.T) {
	clear := &result.Interval{Low: 0.04, High: 0.12, ExcludesZero: true}
	for want, tc := range map[string]struct {
		mean, from float64
		interval   *result.Interval
	}{
		"+0.079 [+0.040, +0.120]":   {0.079, 48.7, clear}, // 0.16 %
		"+0.079 [+0.040, +0.120] *": {0.079, 15.8, clear}, // 0.5 %
		"+0.079 [-0.040, +0.120]":   {0.079, 1, &result.Interval{Low: -0.04, High: 0.12}},
		"-0.079 [+0.040, +0.120] *": {-0.079, 0, clear},
	} {
		d := &result.Difference{Mean: tc.mean, Interval: tc.interval, More: 5}
		if got := differenceText(d, tc.from); got != want {
			t.Errorf("%+v: %s, want %s", tc, got, want)
		}
	}
}
