package format

import "testing"

func TestSuggestion(t *testing.T) {
	known := []string{
		"default",
		"limits",
		"low-risk",
		"NodeResourcesLimits",
		"overloadMinutes",
		"cpuOverloadMinutes",
		"--seed",
		"--seeds",
		"from",
	}
	for name, want := range map[string]string{
		"limts": "; did you mean limits?", "NodeResourceLimits": "; did you mean NodeResourcesLimits?", "LIMITS": "; did you mean limits?",
		"overload": "; did you mean overloadMinutes?", "ol": "", "prod": "", "": "", "lowrisk": "; did you mean low-risk?",
		"--seeds": "; did you mean --seeds?", "form": "; did you mean from?", "cron": "",
	} {
		if got := Suggestion(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
