package result

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// figures have the mean of the first profile, the mean of the second profile, and whether the difference is clear.
type figures map[string][3]float64

// comparisonOf returns a result of two profiles with differences of some figures.
func comparisonOf(seeds int, figures figures) *Result {
	base, other := Profile{Name: "default", Figures: map[string]Figure{}}, Profile{Name: "other", Figures: map[string]Figure{}}
	for name, f := range figures {
		d := &Difference{Mean: f[1] - f[0], Less: 1, More: 1}
		if seeds > 1 {
			d.Interval = &Interval{Low: d.Mean - 1, High: d.Mean + 1, ExcludesZero: f[2] > 0}
		}
		base.Figures[name], other.Figures[name] = Figure{Mean: f[0]}, Figure{Mean: f[1], Difference: d}
	}
	r := &Result{
		Profiles: []string{"default", "other"},
		Scenario: Scenario{Profiles: []Profile{base, other}},
		Assumed: []string{
			"the usage of pods is generated, with seeds 1 to 5", "a node has 110 pods",
			"labels, taints and amounts of nodes are those last recorded",
		},
		Settings: Settings{Level: 0.95},
	}
	for i := range seeds {
		r.Seeds = append(r.Seeds, uint64(i+1))
	}
	return r
}

// concluded returns the recommendation of a result.
func concluded(r *Result) *Recommendation {
	r.Conclude()
	return r.Recommendation
}

// TestRecommendation checks the recommendation: a clear effect without clear harm, and nothing from one seed.
func TestRecommendation(t *testing.T) {
	tests := map[string]struct {
		seeds     int
		figures   figures
		unlimited int
		want      string
		price     string
	}{
		"clearly better": {5, figures{"overloadMinutes": {100, 10, 1}}, 0, "Use other in place of default.", "No figure is clearly worse."},
		"not clear":      {5, figures{"overloadMinutes": {100, 90, 0}}, 0, "Keep default: ", "No figure is clearly worse."},
		"clear harm": {
			5,
			figures{"overloadMinutes": {100, 10, 1}, "unschedulable": {0, 5, 1}},
			0, "Keep default: ",
			"Clearly worse: unschedulable pods +5",
		},
		"a price that is no harm": {
			5,
			figures{"overloadMinutes": {100, 10, 1}, "cpuLimitRatioMax": {1.5, 2, 1}},
			0, "Use other in place of default.",
			"Clearly worse: CPU limit ratio, max +0.5",
		},
		"blind limit ratios": {
			5,
			figures{"overloadMinutes": {100, 10, 1}, "cpuLimitRatioMax": {1.5, 2, 1}},
			7, "Use other in place of default.",
			"No figure is clearly worse.",
		},
		"cheaper with an autoscaler": {
			5,
			figures{"cost": {200, 180, 1}, "overloadMinutes": {100, 110, 0}, "cpuLimitRatioMax": {1.5, 2, 1}},
			0,
			"Use other in place of default.", "Clearly worse: CPU limit ratio, max +0.5",
		},
		"cheaper with more overload": {
			5,
			figures{"cost": {200, 180, 1}, "overloadMinutes": {100, 110, 1}},
			0,
			"Keep default: no other profile costs clearly less or overloads", "Clearly worse: overload, node minutes +10",
		},
		"less overload at a higher cost": {
			5, figures{"cost": {180, 200, 1}, "overloadMinutes": {100, 10, 1}}, 0, "Keep default: ", "Clearly worse: cost of nodes +20",
		},
		"less overload at about the cost": {
			5,
			figures{"cost": {180, 181, 0}, "overloadMinutes": {100, 10, 1}},
			0,
			"Use other in place of default.", "No figure is clearly worse.",
		},
		"one seed": {1, figures{"overloadMinutes": {100, 10, 1}}, 0, "Cannot tell: one pair", "No figure is clearly worse."},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := comparisonOf(tc.seeds, tc.figures)
			r.Source.Unlimited = tc.unlimited
			s := concluded(r)
			if !strings.HasPrefix(s.Headline, tc.want) || len(s.Price) != 1 || !strings.HasPrefix(s.Price[0], tc.price) {
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
	if concluded(&Result{Profiles: []string{"one"}}) != nil {
		t.Error("a recommendation without a comparison")
	}
}

// TestModelError has a clear difference of 90 node minutes over a recording, over which the model errs by 88 or 92.
func TestModelError(t *testing.T) {
	for errs, want := range map[float64]Answer{88: Better, 92: CannotTell} {
		r := comparisonOf(5, figures{"overloadMinutes": {100, 10, 1}})
		r.Backtest = &Backtest{
			Figures: []BacktestFigure{{Name: "overloadMinutes", Unit: nodeMinutes, Measured: 1000, Simulated: 1000 - errs}},
		}
		s, v := concluded(r), r.Scenario.Profiles[1].Verdict
		const reason = "The error of the model, 92 node minutes, is larger than the difference, 90."
		if isUnclear := want == CannotTell; v.Answer != want || (v.Reason == reason) != isUnclear ||
			strings.HasPrefix(
				v.Sentence,
				"Cannot tell. "+reason,
			) != isUnclear || strings.HasPrefix(s.Headline, "Keep default: ") != isUnclear {
			t.Errorf("error %v: %s, %+v", errs, s.Headline, v)
		}
	}
}

// TestRecommendationOfRejectedProfiles checks that the box describes the profile with the least overload if none is recommended.
func TestRecommendationOfRejectedProfiles(t *testing.T) {
	r := comparisonOf(5, figures{"overloadMinutes": {100, 110, 0}})
	third := comparisonOf(5, figures{"overloadMinutes": {100, 90, 0}}).Scenario.Profiles[1]
	third.Name = "third"
	r.Profiles, r.Scenario.Profiles = append(r.Profiles, third.Name), append(r.Scenario.Profiles, third)
	s := concluded(r)
	if !strings.HasPrefix(s.Headline, "Keep default: ") || s.Of != "third" ||
		!strings.Contains(s.Effect[0], "90 node minutes instead of 100") {
		t.Errorf("%+v, want the effect of third", s)
	}
}

// TestHeadroom checks that clear differences in the load of the fullest node are the effect if no node is overloaded.
func TestHeadroom(t *testing.T) {
	for name, tc := range map[string]struct {
		seeds        int
		max, p95     [3]float64
		want, effect string
	}{
		"lower maximum": {
			5,
			[3]float64{0.8, 0.61, 1},
			[3]float64{0.6, 0.6, 0},
			"No node was overloaded with any profile; other leaves more headroom",
			"No node is overloaded with either profile. CPU load of nodes, max: 61 % instead of 80 %, 19 points more headroom, [−81, +119].",
		},
		"lower p95": {5, [3]float64{}, [3]float64{0.7, 0.6, 1}, "other leaves more headroom", "p95: 60 % instead of 70 %, 10 points more"},
		"higher":    {5, [3]float64{0.7, 0.8, 1}, [3]float64{}, "Cannot tell: no node was", "max: 80 % instead of 70 %, 10 points less"},
		"not clear": {5, [3]float64{0.8, 0.6, 0}, [3]float64{}, "Cannot tell: no node was", "No node is overloaded with either profile."},
		"less than a point": {
			5, [3]float64{0.8, 0.795, 1}, [3]float64{}, "Cannot tell: no node was", "No node is overloaded with either profile.",
		},
		"one seed": {1, [3]float64{0.8, 0.6, 0}, [3]float64{}, "Cannot tell: no node was", "No node is overloaded with either profile."},
	} {
		r := comparisonOf(tc.seeds, figures{"overloadMinutes": {}, "cpuLoadMax": tc.max, "cpuLoadP95": tc.p95})
		for i := range r.Scenario.Profiles {
			r.Scenario.Profiles[i].Runs = []Run{{Scheduled: 1}}
			r.Scenario.Profiles[i].Figures["overloadMinutes"] = Figure{Difference: &Difference{}}
		}
		s := concluded(r)
		if !strings.Contains(s.Headline, tc.want) || len(s.Effect) != 1 || !strings.HasSuffix(s.Effect[0], tc.effect) &&
			!strings.Contains(s.Effect[0], tc.effect+" headroom") {
			t.Errorf("%s: %q, effect %q", name, s.Headline, s.Effect)
		}
		if strings.Contains(s.Headline, "seeds") {
			t.Errorf("%s: more seeds do not help", name)
		}
	}
}

// TestCannotTell checks the verdicts on runs that show nothing, and that only a profile to use has an instruction.
func TestCannotTell(t *testing.T) {
	equal := figures{"overloadMinutes": {0, 0, 0}}
	better := figures{"overloadMinutes": {9, 1, 1}}
	for name, tc := range map[string]struct {
		run     Run
		figures figures
		name    string
		want    string
		apply   string
	}{
		"no overload":       {Run{Scheduled: 1}, equal, "limits", "no node was overloaded", ""},
		"nothing scheduled": {Run{}, equal, "limits", "no pod was scheduled", ""},
		"profile of the chart": {
			Run{Scheduled: 1, Outcome: Outcome{OverloadMinutes: 1}},
			better, "predicted", "Use predicted in place of default.",
			"scheduler.profiles: [{schedulerName: plimsoll-scheduler, use: predicted}]",
		},
		"file": {
			Run{Scheduled: 1, Outcome: Outcome{OverloadMinutes: 1}},
			better, "new.yaml", "Use new.yaml",
			"--set-file scheduler.config=new.yaml",
		},
		"other": {
			Run{Scheduled: 1, Outcome: Outcome{OverloadMinutes: 1}},
			better, "allocatable-most", "Use allocatable-most", "scheduler.config, with",
		},
	} {
		r := comparisonOf(2, tc.figures)
		r.Profiles[1], r.Scenario.Profiles[1].Name = tc.name, tc.name
		for i := range r.Scenario.Profiles {
			r.Scenario.Profiles[i].Runs = []Run{tc.run, tc.run}
		}
		s := concluded(r)
		if !strings.Contains(s.Headline, tc.want) || !strings.Contains(s.Apply, tc.apply) ||
			(s.Apply == "") != (tc.apply == "") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestChartProfiles checks that the profiles that can be applied are those of the chart.
func TestChartProfiles(t *testing.T) {
	files, err := filepath.Glob("../../../charts/plimsoll/generated/profiles/*.yaml")
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	if err != nil || !slices.Equal(names, ChartProfiles) {
		t.Errorf("%q, %v; want %q", names, err, ChartProfiles)
	}
}

// slackComparison returns a result of rates of slack, each with a mean pending time, a cost and an overload. The first
// rate is the baseline; clear is whether the differences of the pending time are clear.
func slackComparison(clear bool, options [][3]float64) *Result {
	r := &Result{Seeds: []uint64{1, 2, 3}, Settings: Settings{Level: 0.95}}
	for i, o := range options {
		name := fmt.Sprintf("slack %d%%", 10*i)
		p := Profile{Name: name, Slack: name, Figures: map[string]Figure{}}
		for j, figure := range []string{"pendingSecondsMean", "cost", "overloadMinutes"} {
			f := Figure{Mean: o[j]}
			if i > 0 {
				difference := o[j] - options[0][j]
				f.Difference = &Difference{
					Mean: difference, Less: 1, More: 1,
					Interval: &Interval{Low: difference - 0.1, High: difference + 0.1, ExcludesZero: clear || j > 0},
				}
				if difference == 0 {
					f.Difference = &Difference{Equal: 2, Interval: &Interval{}}
				}
			}
			p.Figures[figure] = f
		}
		r.Profiles = append(r.Profiles, name)
		r.Scenario.Profiles = append(r.Scenario.Profiles, p)
	}
	return r
}

// TestSlackRecommendation checks which amount of slack is recommended: pending time, cost and overload of each option.
func TestSlackRecommendation(t *testing.T) {
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
			"Use slack 20% in place of slack 0%",
			"1.40 s on average instead of 6 s", "cost of nodes +7",
		},
		// 6 - 2.7 = 3.3 is less than two thirds of 5.
		"a cheaper one that reduces too little": {
			true,
			[][3]float64{{6, 100, 0}, {2.7, 107, 0}, {1, 130, 0}},
			"Use slack 20% in place of slack 0%",
			"1 s on average instead of 6 s", "cost of nodes +30",
		},
		"harm": {
			true,
			[][3]float64{{6, 100, 0}, {4, 103, 0}, {1, 130, 9}},
			"Use slack 10% in place of slack 0%",
			"4 s on average instead of 6 s", "cost of nodes +3",
		},
		"not clear": {
			false,
			[][3]float64{{6, 100, 0}, {1, 107, 0}},
			"Keep slack 0%: ",
			"Whether pods are pending for more or less time is not clear: 1 s", "cost of nodes +7",
		},
		"longer": {true, [][3]float64{{6, 100, 0}, {7, 101, 0}}, "Keep slack 0%: ", "Pods are pending for more time: 7 s", "cost of nodes +1"},
		"equal":  {true, [][3]float64{{6, 100, 0}, {6, 100, 0}}, "Keep slack 0%: ", "", "Cost of nodes: 100 with both."},
	} {
		t.Run(name, func(t *testing.T) {
			s := concluded(slackComparison(tc.clear, tc.options))
			if !strings.HasPrefix(s.Headline, tc.want) {
				t.Errorf("%q, want %q", s.Headline, tc.want)
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

// TestEqualSlack expects that profiles with the same slack are compared by their cost, as without slack.
func TestEqualSlack(t *testing.T) {
	r := comparisonOf(5, figures{"cost": {36, 31, 1}, "overloadMinutes": {0, 0, 0}, "pendingSecondsMean": {1, 2, 0}})
	for i, name := range []string{"default, slack 20%", "packed, slack 20%"} {
		r.Profiles[i], r.Scenario.Profiles[i].Name, r.Scenario.Profiles[i].Slack = name, name, "20%"
	}
	s := concluded(r)
	if s.Headline != "Use packed, slack 20% in place of default, slack 20%." || !strings.HasSuffix(s.Apply, "use: packed}]") {
		t.Errorf("%+v", s)
	}
}
