package tune

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

func TestObjectives(t *testing.T) {
	run := &result.Run{Outcome: result.Outcome{OverloadMinutes: 30, Unschedulable: 2, NodesUsed: 7.5, Victims: 4}}
	for text, want := range map[string]float64{
		DefaultObjective:                 230, // 30 + 100*2
		"overloadMinutes=2,nodesUsed=10": 135, // 2*30 + 10*7.5
		"nodesUsed=2, unschedulable=0":   15,  // 2*7.5; a weight of 0 is no figure
		"victims=0.5":                    2,   // 0.5*4
	} {
		o, err := ParseObjective(text, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := o.Value(run); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
		if again, err := ParseObjective(o.String(), false); err != nil || again.Value(run) != want {
			t.Errorf("%s is printed as %s: %v", text, o, err)
		}
	}
	if _, err := ParseObjective("cost=1", true); err != nil {
		t.Error(err)
	}
}

func TestObjectiveErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "no figure has a weight",
		"overloadMinutes=0":  "no figure has a weight",
		"overloadMinutes":    `invalid value "overloadMinutes": must be key=value pairs`,
		"overloadMinutes=-1": `overloadMinutes: invalid value "-1": must be a number from 0 to 1e+09`,
		"overload=1":         `unknown key "overload": must be one of overloadMinutes, cpuOverloadMinutes,`,
		"cost=1":             `cost: invalid value "1": must be absent without --autoscaler`,
	} {
		if _, err := ParseObjective(text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzObjective verifies that every accepted objective is finite and printed so that it is accepted again.
func FuzzObjective(f *testing.F) {
	f.Add(DefaultObjective, true)
	f.Add("nodesUsed=1e-300,victims=0x1p-2", false)
	f.Add("overloadMinutes=1,overloadMinutes=2", false)
	f.Fuzz(func(t *testing.T, text string, autoscaler bool) {
		o, err := ParseObjective(text, autoscaler)
		if err != nil {
			return
		}
		again, err := ParseObjective(o.String(), autoscaler)
		if err != nil || again.String() != o.String() {
			t.Errorf("%q is printed as %q, which is %q: %v", text, o, again, err)
		}
	})
}
