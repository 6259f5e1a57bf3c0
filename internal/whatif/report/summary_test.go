package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// comparisonOf returns a result of two profiles with differences of some figures: mean of the first profile, mean
// of the second profile, and whether the difference is clear.
func comparisonOf(seeds int, figures map[string][3]float64) *result.Result {
	base, other := result.Profile{Name: "default", Figures: map[string]result.Figure{}}, result.Profile{
		Name: "other", Figures: map[string]result.Figure{},
	}
	for name, f := range figures {
		d := &result.Difference{Mean: f[1] - f[0], Less: 1, More: 1}
		if seeds > 1 {
			d.Interval = &result.Interval{Low: d.Mean - 1, High: d.Mean + 1, ExcludesZero: f[2] > 0}
		}
		base.Figures[name], other.Figures[name] = result.Figure{Mean: f[0]}, result.Figure{Mean: f[1], Difference: d}
	}
	r := &result.Result{
		Profiles:  []string{"default", "other"},
		Scenarios: []result.Scenario{{Profiles: []result.Profile{base, other}}},
		Assumed: []string{
			"the usage of pods is generated, with seeds 1 to 5",
			"a node has 110 pods",
			"labels, taints and amounts of nodes are those last recorded",
		},
		Settings: result.Settings{Level: 0.95},
	}
	for i := range seeds {
		r.Seeds = append(r.Seeds, uint64(i+1))
	}
	return r
}

// TestSummary checks the recommendation: a clear effect without clear harm, and nothing from one seed.
func TestSummary(t *testing.T) {
	tests := map[string]struct {
		seeds     int
		figures   map[string][3]float64
		unlimited int
		want      string
		price     string
	}{
		"clearly better": {
			5,
			map[string][3]float64{"overloadMinutes": {100, 10, 1}},
			0,
			"Use other in place of default.",
			"No figure is clearly worse.",
		},
		"not clear": {5, map[string][3]float64{"overloadMinutes": {100, 90, 0}}, 0, "Keep default: ", "No figure is clearly worse."},
		"clear harm": {
			5,
			map[string][3]float64{"overloadMinutes": {100, 10, 1}, "unschedulable": {0, 5, 1}},
			0,
			"Keep default: ", "Clearly worse: unschedulable pods +5",
		},
		"a price that is no harm": {
			5,
			map[string][3]float64{"overloadMinutes": {100, 10, 1}, "cpuLimitRatioMax": {1.5, 2, 1}},
			0,
			"Use other in place of default.", "Clearly worse: CPU limit ratio, max +0.5",
		},
		"blind limit ratios": {
			5,
			map[string][3]float64{"overloadMinutes": {100, 10, 1}, "cpuLimitRatioMax": {1.5, 2, 1}},
			7,
			"Use other in place of default.", "No figure is clearly worse.",
		},
		"one seed": {1, map[string][3]float64{"overloadMinutes": {100, 10, 1}}, 0, "No recommendation: ", "No figure is clearly worse."},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := comparisonOf(tc.seeds, tc.figures)
			r.Source.Unlimited = tc.unlimited
			s := newSummary(r)
			if !strings.HasPrefix(s.Recommendation, tc.want) || len(s.Price) != 1 || !strings.HasPrefix(s.Price[0], tc.price) {
				t.Errorf("%+v, want %s %s", s, tc.want, tc.price)
			}
			if len(s.Effect) != 1 || !strings.Contains(s.Effect[0], " node minutes instead of 100") {
				t.Errorf("effect %q", s.Effect)
			}
			if s.Evidence[1] != "The usage of pods is generated, with seeds 1 to 5." || (len(s.Evidence) == 3) != (tc.unlimited > 0) {
				t.Errorf("evidence %q", s.Evidence)
			}
		})
	}
	if newSummary(&result.Result{Profiles: []string{"one"}}) != nil {
		t.Error("a recommendation without a comparison")
	}
}

// TestSummaryOfRejectedProfiles checks that the box describes the profile with the least overload if none is recommended.
func TestSummaryOfRejectedProfiles(t *testing.T) {
	r := comparisonOf(5, map[string][3]float64{"overloadMinutes": {100, 110, 0}})
	third := comparisonOf(5, map[string][3]float64{"overloadMinutes": {100, 90, 0}}).Scenarios[0].Profiles[1]
	third.Name = "third"
	r.Profiles, r.Scenarios[0].Profiles = append(r.Profiles, third.Name), append(r.Scenarios[0].Profiles, third)
	s := newSummary(r)
	if !strings.HasPrefix(s.Recommendation, "Keep default: ") || s.Of != "third" ||
		!strings.Contains(s.Effect[0], "90 node minutes instead of 100") {
		t.Errorf("%+v, want the effect of third", s)
	}
}

// slackComparison returns a result of rates of slack, each with a mean pending time, a cost and an overload. The first
// rate is the baseline; clear is whether the differences of the pending time are clear.
func slackComparison(clear bool, options [][3]float64) *result.Result {
	r := &result.Result{Seeds: []uint64{1, 2, 3}, Settings: result.Settings{Level: 0.95}, Scenarios: []result.Scenario{{}}}
	for i, o := range options {
		name := fmt.Sprintf("slack %d%%", 10*i)
		p := result.Profile{Name: name, Slack: name, Figures: map[string]result.Figure{}}
		for j, figure := range []string{"pendingSecondsMean", "cost", "overloadMinutes"} {
			f := result.Figure{Mean: o[j]}
			if i > 0 {
				difference := o[j] - options[0][j]
				f.Difference = &result.Difference{
					Mean: difference, Less: 1, More: 1,
					Interval: &result.Interval{Low: difference - 0.1, High: difference + 0.1, ExcludesZero: clear || j > 0},
				}
				if difference == 0 {
					f.Difference = &result.Difference{Equal: 2, Interval: &result.Interval{}}
				}
			}
			p.Figures[figure] = f
		}
		r.Profiles = append(r.Profiles, name)
		r.Scenarios[0].Profiles = append(r.Scenarios[0].Profiles, p)
	}
	return r
}

// TestSlackSummary checks which amount of slack is recommended: pending time, cost and overload of each option.
func TestSlackSummary(t *testing.T) {
	for name, tc := range map[string]struct {
		clear   bool
		options [][3]float64
		want    string
		effect  string
		price   string
	}{
		// 6 - 1.4 = 4.6 is more than two thirds of 6 - 1 = 5, 6 - 4 = 2 is less.
		"the cheapest that reduces enough": {
			true,
			[][3]float64{{6, 100, 0}, {4, 103, 0}, {1.4, 107, 0}, {1, 130, 0}},
			"Use slack 20% in place of slack 0%", "1.400 s on average instead of 6 s", "cost of nodes +7",
		},
		// 6 - 2.7 = 3.3 is less than two thirds of 5.
		"a cheaper one that reduces too little": {
			true,
			[][3]float64{{6, 100, 0}, {2.7, 107, 0}, {1, 130, 0}},
			"Use slack 20% in place of slack 0%", "1 s on average instead of 6 s", "cost of nodes +30",
		},
		"harm": {
			true,
			[][3]float64{{6, 100, 0}, {4, 103, 0}, {1, 130, 9}},
			"Use slack 10% in place of slack 0%", "4 s on average instead of 6 s", "cost of nodes +3",
		},
		"not clear": {
			false,
			[][3]float64{{6, 100, 0}, {1, 107, 0}},
			"Keep slack 0%: ", "Whether pods are pending for more or less time is not clear: 1 s", "cost of nodes +7",
		},
		"longer": {true, [][3]float64{{6, 100, 0}, {7, 101, 0}}, "Keep slack 0%: ", "Pods are pending for more time: 7 s", "cost of nodes +1"},
		"equal":  {true, [][3]float64{{6, 100, 0}, {6, 100, 0}}, "Keep slack 0%: ", "", "Cost of nodes: 100 with both."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSummary(slackComparison(tc.clear, tc.options))
			if !strings.HasPrefix(s.Recommendation, tc.want) {
				t.Errorf("%q, want %q", s.Recommendation, tc.want)
			}
			if len(s.Effect) != 1 || !strings.Contains(s.Effect[0], tc.effect) {
				t.Errorf("effect %q, want %q", s.Effect, tc.effect)
			}
			if len(s.Price) == 0 || !strings.Contains(s.Price[0], tc.price) {
				t.Errorf("price %q, want %q", s.Price, tc.price)
			}
		})
	}
}

// TestSummaryIsFirst checks that the box comes first, and that only changed parts are not folded.
func TestSummaryIsFirst(t *testing.T) {
	page := write(t, sample(t, 1, 2, 5, 20))
	box, changed, folded := strings.Index(
		page,
		`<section class="summary"`,
	), strings.Index(
		page,
		"Clearly better",
	), strings.Index(
		page,
		`<details class="part">`,
	)
	if box < 0 || box > changed || changed > folded {
		t.Errorf("box at %d, what changed at %d, folded parts at %d", box, changed, folded)
	}
}

func TestWords(t *testing.T) {
	for spec, want := range map[string]string{
		"cpu=bursts:mean=0.7,max=4,between=0,hold=10;memory=bursts:mean=0.7,max=4,between=0,hold=10": "CPU and memory bursts, mean 0.7 of the request, " +
			"at most 4 times the request, changes every 10 min",
		"cpu=beta:mean=0.4;memory=constant": "CPU beta, mean 0.4 of the request; memory constant",
		"beta:mean=0.4":                     "beta:mean=0.4",
		"":                                  "",
		"cpu=diurnal:amplitude=0.5":         "CPU diurnal, amplitude=0.5",
	} {
		if got := words(spec); got != want {
			t.Errorf("%q: %q, want %q", spec, got, want)
		}
	}
	for spec, want := range map[string]string{"ratio=2": "2 times the requests", "ratio=1+2": "1 or 2 times the requests", "cpu=2,memory=1": "cpu=2,memory=1", "": ""} {
		if got := limitWords(spec); got != want {
			t.Errorf("%q: %q, want %q", spec, got, want)
		}
	}
}
