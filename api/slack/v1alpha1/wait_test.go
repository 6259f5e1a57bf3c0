package v1alpha1

import (
	"strings"
	"testing"
	"time"
)

// TestParseWait checks valid goals, and that errors say what is allowed.
func TestParseWait(t *testing.T) {
	const form = "a percentile and a time of whole seconds such as p99=5s or p99.9=1m"
	for text, want := range map[string]string{
		"p99=5s": "", "p99.9=1m": "", "p100=1s": "", "p99=1m30s": "",
		"":         form,
		"99=5s":    form,
		"p99=5":    form,
		"p99=1.5s": form,
		"p0=5s":    "with a percentile of more than p0 up to p100",
		"p101=5s":  "with a percentile of more than p0 up to p100",
		"pNaN=5s":  "with a percentile of more than p0 up to p100",
		"p99=0s":   form + ", with a time of at least 1s",
		"p99=-5s":  "with a time of at least 1s",
	} {
		percent, wait, err := ParseWait(text)
		switch {
		case want == "" && (err != nil || percent < 99 || wait < time.Second):
			t.Errorf("%s: %v, %s, %v", text, percent, wait, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
