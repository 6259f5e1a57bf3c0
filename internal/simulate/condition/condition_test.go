package condition

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// twoProfiles returns a result of two profiles and two seeds, with 1 and 2 minutes of
// overload with the first, and 4 and 5 with the second.
func twoProfiles(t *testing.T) *result.Result {
	t.Helper()
	r := &result.Result{
		APIVersion: result.APIVersion, Profiles: []string{"old", "new.yaml"},
		Scenarios: []result.Scenario{{Limits: "ratio=2", Usage: "beta"}},
	}
	s := &r.Scenarios[0]
	for i, name := range r.Profiles {
		s.Profiles = append(s.Profiles, result.Profile{Name: name, Runs: []result.Run{
			{Seed: 1, Outcome: result.Outcome{OverloadMinutes: float64(1 + 3*i)}},
			{Seed: 2, Outcome: result.Outcome{OverloadMinutes: float64(2 + 3*i)}},
		}})
	}
	s.Compare()
	return r
}

func TestEvaluate(t *testing.T) {
	r := twoProfiles(t)
	for expression, want := range map[string]bool{
		`profiles["new.yaml"].overloadMinutes > profiles["old"].overloadMinutes`:         true,
		`profiles["new.yaml"].overloadMinutes > 4`:                                       true,
		`profiles["new.yaml"].overloadMinutes > 4.5`:                                     false,
		`profiles.old.overloadMinutes == 1.5`:                                            true,
		`differences["new.yaml"].overloadMinutes.low > 0.0`:                              true,
		`differences["new.yaml"].overloadMinutes.clear`:                                  true,
		`differences["new.yaml"].overloadMinutes.mean != 3.0`:                            false,
		`differences["new.yaml"].victims.clear`:                                          false,
		`limits == "ratio=2" && usage.startsWith("beta")`:                                true,
		`result.interrupted`:                                                             false,
		`result.scenarios.exists(s, s.profiles.exists(p, p.figures.victims.mean > 0.0))`: false,
		`result.scenarios[0].profiles[1].runs.all(r, r.overloadMinutes >= 4.0)`:          true,
	} {
		c, err := New(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, err := c.Evaluate(r, 0); err != nil || got != want {
			t.Errorf("%s is %t (%v), want %t", expression, got, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for expression, want := range map[string]string{
		`profiles[`:               "Syntax error",
		`profile["a"].b > 1.0`:    "undeclared reference to 'profile'",
		`1 + 1`:                   "has the type int: must be bool",
		strings.Repeat("a", 5000): "has 5000 bytes: must have at most 4096",
	} {
		if _, err := New(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %s", expression, err, want)
		}
	}
	for expression, want := range map[string]string{
		`profiles["none"].victims > 0.0`:    "no such key: none",
		`differences.old.victims.low > 0.0`: "no such key: old",
		`result.source.name`:                "has the type string: must be bool",
		`result.scenarios.all(a, result.scenarios.all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,` +
			`9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, [1,2,3,4,5,6,7,8,9,10].all(h, [1,2,3,4,5,6,7,8,` +
			`9,10].all(i, true)))))))))`: "cost limit",
	} {
		c, err := New(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if _, err := c.Evaluate(twoProfiles(t), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
	if c, err := New(""); c != nil || err != nil {
		t.Errorf("empty expression: %v, %v", c, err)
	}
}
