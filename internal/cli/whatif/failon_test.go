package whatif

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// twoProfiles has 1 and 2 minutes of overload with the first profile, and with the second 11 and 13: a mean of 12 and a difference of
// 10.5 +- 12.706 * 0.707 / sqrt(2) = 10.5 +- 6.35.
func twoProfiles() *result.Scenario {
	run := func(seed uint64, overload float64) result.Run {
		return result.Run{Seed: seed, Outcome: result.Outcome{OverloadMinutes: overload}}
	}
	s := &result.Scenario{Profiles: []result.Profile{
		{Name: "old", Runs: []result.Run{run(1, 1), run(2, 2)}}, {Name: "new", Runs: []result.Run{run(1, 11), run(2, 13)}},
	}}
	s.Compare()
	return s
}

func TestConditions(t *testing.T) {
	for text, want := range map[string]bool{
		"overloadMinutes>11.9": true, "overloadMinutes > 12": false, "overloadMinutes<12.1": true, "overloadMinutes<12": false,
		// The baseline, with a mean of 1.5, is not judged.
		"overloadMinutes<2": false,
		// 4.15 to 16.85.
		"difference.overloadMinutes>4.1": true, "difference.overloadMinutes>4.2": false,
		"difference.overloadMinutes<16.9": true, "difference.overloadMinutes<16.8": false,
		"difference.victims>0": false, "victims>-1e9": true,
	} {
		c, err := parseCondition(text)
		must.Succeed(t, err)
		if profile, got, err := c.evaluate(twoProfiles()); err != nil || got != want || got && profile != "new" {
			t.Errorf("%s is %t with %s (%v), want %t", text, got, profile, err, want)
		}
	}
	alone := twoProfiles()
	alone.Profiles = alone.Profiles[:1]
	if _, isTrue, err := (condition{figure: "overloadMinutes", number: 1}).evaluate(alone); err != nil || !isTrue {
		t.Errorf("a single profile is not judged: %v", err)
	}
}

func TestConditionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"overloadMinutes=>1":  `invalid condition "overloadMinutes=>1": must have > or <, without =`,
		"overloadMinutes>":    "must have a finite number after >",
		"overloadMinutes<NaN": "must have a finite number after <",
		"":                    "invalid condition",
	} {
		if _, err := parseCondition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	alone := twoProfiles()
	alone.Profiles = alone.Profiles[:1]
	if _, _, err := (condition{figure: "victims", difference: true}).evaluate(alone); err == nil {
		t.Error("a difference without a second profile")
	}
	if _, _, err := (condition{figure: "cost"}).evaluate(twoProfiles()); err == nil {
		t.Error("a cost without an autoscaler")
	}
}

func FuzzParseCondition(f *testing.F) {
	f.Add("difference.overloadMinutes<-1e3")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseCondition(text); err == nil {
			if _, found := result.FigureByName(c.figure); !found {
				t.Errorf("%+v", c)
			}
		}
	})
}
