package condition

import "testing"

// TestCheck checks that keys are known before there is a result.
func TestCheck(t *testing.T) {
	keys := Keys{Profiles: []string{"old", "new.yaml"}, Figures: []string{"victims", "overloadMinutes"}, Intervals: true}
	single := Keys{Profiles: []string{"old"}, Figures: []string{"victims"}}
	tests := map[string]struct {
		expression string
		keys       Keys
		want       string
	}{
		"valid":              {`profiles["new.yaml"].victims > 0.0 && differences["new.yaml"].victims.clear`, keys, ""},
		"an unknown profile": {`true || profiles["new"].victims > 0.0`, keys, `profiles: unknown key "new": must be one of old, new.yaml`},
		"an unknown figure": {
			`profiles.old.victim > 0.0`,
			keys,
			`profiles.old: unknown key "victim": must be one of victims, overloadMinutes`,
		},
		"the baseline": {`differences.old.victims.mean > 0.0`, keys, `differences: unknown key "old": must be one of new.yaml`},
		"an unknown field": {
			`differences["new.yaml"].victims.lo > 0.0`,
			keys,
			`differences.new.yaml.victims: unknown key "lo": must be one of mean, low, high, clear`,
		},
		"one profile": {
			`differences.old.victims.mean > 0.0`,
			single,
			`differences: unknown key "old": there are none with one profile`,
		},
		"in a macro":          {`["a"].all(x, profiles.a.victims > 0.0)`, keys, `profiles: unknown key "a": must be one of old, new.yaml`},
		"a variable key":      {`profiles.exists(p, profiles[p].victims > 0.0)`, keys, ""},
		"the result":          {`result.scenarios[0].profiles[1].name == "x"`, keys, ""},
		"no other variable":   {`limits == "profiles.none"`, keys, ""},
		"has of a known path": {`has(profiles.old.victims)`, keys, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := New(tc.expression)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if err := c.Check(tc.keys); err != nil {
				text = err.Error()
			}
			if text != tc.want {
				t.Errorf("error %q, want %q", text, tc.want)
			}
		})
	}
	if err := (*Condition)(nil).Check(keys); err != nil {
		t.Errorf("without an expression: %v", err)
	}
}
