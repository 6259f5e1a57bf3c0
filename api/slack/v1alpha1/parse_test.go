package v1alpha1

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0%": 0, "10%": 100_000, "0.1": 100_000, "1": Millionth, "1.0": Millionth, "100%": Millionth,
		"0.000001": 1, "0.0001%": 1, "200%": MaxRate, "9999.9999%": 99_999_999,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "10", "1.5", "2", "1.000001", "-1%", "+1%", "1e1", "NaN", ".1", "0.", "1.%", "10 %", "10%%", "0.00001%", "12345%", "10%\n",
	} {
		want := "must be a percentage such as 10%, or a fraction of at most 1 such as 0.1"
		if got, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v, want the error %s", text, got, err, want)
		}
	}
}

func TestParseRateFlag(t *testing.T) {
	for text, want := range map[string]string{
		"200%":   "<nil>",
		"200.1%": `--rate: invalid value "200.1%": must be at most 200%`,
		"20":     `--rate: invalid value "20": must be a percentage such as 10%, or a fraction of at most 1 such as 0.1`,
	} {
		_, err := ParseRateFlag("rate", text)
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s: error %q, want %q", text, got, want)
		}
	}
}

// TestRatePatternOfCRD expects the pattern of the parser in the CRD.
func TestRatePatternOfCRD(t *testing.T) {
	raw, err := os.ReadFile("../../../config/crd/plimsoll.dev_resourceslacks.yaml")
	must.Succeed(t, err)
	if want := "self.matches('" + ratePattern.String() + "')"; !strings.Contains(string(raw), want) {
		t.Errorf("the CRD does not contain %s", want)
	}
}

// FuzzParseRate expects rates in [0, 9999.9999%], and fractions of at most 1.
func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"10%", "0.1", "1", "9999.9999%", "-1", "1e9%", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := ParseRate(text)
		if err != nil {
			return
		}
		limit := int64(99_999_999)
		if !strings.HasSuffix(text, "%") {
			limit = Millionth
		}
		if rate < 0 || rate > limit {
			t.Errorf("%q: %d, want at most %d", text, rate, limit)
		}
	})
}

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
