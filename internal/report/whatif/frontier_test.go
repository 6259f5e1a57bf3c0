package whatif

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// withSlack makes every profile of a sample one with an autoscaler and so much slack,
// each of which costs 1 more and saves 10 s.
func withSlack(t *testing.T, r *result.Result, names ...string) {
	t.Helper()
	r.Settings.Autoscaler = &result.Autoscaler{Groups: []string{"name=" + nasty}, Priced: true}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for j := range s.Profiles {
			p := &s.Profiles[j]
			p.Slack = names[j]
			for k := range p.Runs {
				p.Runs[k].PendingSeconds.Mean = 100 - 10*float64(j) + float64(k)
				p.Runs[k].Scaling = &result.Scaling{Cost: 20 + float64(j) + 0.1*float64(k), NodeHours: 40, Slack: &result.SlackKept{Mean: 0.5}}
			}
		}
		if err := s.Compare(); err != nil {
			t.Fatal(err)
		}
	}
}

// Of 20, 20.1 and 20.2 the mean is 20.1; pods wait for 100, 101 and 102 s.
func TestFrontier(t *testing.T) {
	r := sample(t, 1, 2, 3, 10)
	withSlack(t, r, "0%", nasty)
	page := write(t, r)
	read := text(t, page)
	for _, want := range []string{"What slack costs, and what it saves", "cost of nodes", "20.10", "20.00 to 20.20", "101", "91", nasty, "50" + thin + "%", "Autoscaler, by group", "slack kept, mean part"} {
		if !strings.Contains(read, want) {
			t.Errorf("%q is not there", want)
		}
	}
	if found := external.FindString(page); found != "" {
		t.Errorf("found %q", found)
	}
	if again := write(t, r); again != page {
		t.Error("the same result gives other bytes")
	}
}

// Who asks for no slack, or for one only, sees nothing of it.
func TestNoFrontier(t *testing.T) {
	r := sample(t, 1, 2, 3, 10)
	if read := text(t, write(t, r)); strings.Contains(read, "What slack costs") || strings.Contains(read, "slack kept") || strings.Contains(read, "Autoscaler") {
		t.Error("without an autoscaler there is something about slack")
	}
	withSlack(t, r, "10%", "")
	if read := text(t, write(t, r)); strings.Contains(read, "What slack costs") || !strings.Contains(read, "slack kept, mean part") {
		t.Error("one slack has a frontier, or no figures")
	}
}

// Whatever the figures are, all that is drawn is finite and in the picture.
func TestFrontierIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		figure := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, -1, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}))
		interval := rapid.Custom(func(t *rapid.T) *result.Interval {
			if rapid.Bool().Draw(t, "one seed") {
				return nil
			}
			return &result.Interval{Low: figure.Draw(t, "low"), High: figure.Draw(t, "high")}
		})
		var points []result.FrontierPoint
		for i := range rapid.IntRange(2, 6).Draw(t, "points") {
			points = append(points, result.FrontierPoint{
				Name: "p, slack " + fmt.Sprint(i), Slack: fmt.Sprint(i), Cost: figure.Draw(t, "cost"), Pending: figure.Draw(t, "pending"),
				CostInterval: interval.Draw(t, "of cost"), PendingInterval: interval.Draw(t, "of pending"),
			})
		}
		drawn := string(frontierPicture(points, "cost"))
		if strings.Contains(drawn, "NaN") || strings.Contains(drawn, "Inf") || strings.Count(drawn, "<circle") != len(points) {
			t.Fatal(drawn)
		}
	})
}
