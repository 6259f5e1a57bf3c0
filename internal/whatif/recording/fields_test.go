package recording

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// readFields parses a text with one key of each type.
func readFields(text string) (float64, int, error) {
	f, err := ParseFields(text)
	if err != nil {
		return 0, 0, err
	}
	mean, pods := f.Float("mean", 0.5, 0, 10), f.Int("pods", 7, 1, 100)
	return mean, pods, f.Err()
}

func TestFields(t *testing.T) {
	for text, want := range map[string]struct {
		mean float64
		pods int
	}{
		"":                      {0.5, 7},
		" ":                     {0.5, 7},
		"mean=0.25":             {0.25, 7},
		" pods = 3 , mean=1e-1": {0.1, 3},
		"mean=0,pods=100":       {0, 100},
	} {
		t.Run(text, func(t *testing.T) {
			mean, pods, err := readFields(text)
			if err != nil || mean != want.mean || pods != want.pods {
				t.Errorf("%v, %v, %v, want %+v", mean, pods, err, want)
			}
		})
	}
}

func TestFieldErrors(t *testing.T) {
	for text, want := range map[string]string{
		"mean":              `invalid value "mean": must be key=value pairs separated by commas`,
		"mean=1,":           `invalid value "": must be key=value pairs separated by commas`,
		"=1":                `invalid value "=1": must be key=value pairs separated by commas`,
		"mean=1,mean=2":     `mean: invalid value "2": must be set once`,
		"mean=much":         `mean: invalid value "much": must be a number from 0 to 10`,
		"mean=NaN":          `mean: invalid value "NaN": must be a number from 0 to 10`,
		"mean=-0.1":         `mean: invalid value "-0.1": must be a number from 0 to 10`,
		"mean=1e999":        `mean: invalid value "1e999": must be a number from 0 to 10`,
		"pods=1.5":          `pods: invalid value "1.5": must be a whole number from 1 to 100`,
		"pods=0":            `pods: invalid value "0": must be a whole number from 1 to 100`,
		"node=3":            `unknown key "node": must be one of mean, pods`,
		"mean=much,node=3":  `unknown key "node": must be one of mean, pods`,
		"mean=much,pods=no": `mean: invalid value "much": must be a number from 0 to 10`,
	} {
		t.Run(text, func(t *testing.T) {
			if _, _, err := readFields(text); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
	if _, err := ParseFields(string(make([]byte, maxTextLength+1))); err == nil {
		t.Error("a text longer than MaxLength is accepted")
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"": 0.7, "fill=0.9": 0.9, "fill=90%": 0.9, "fill=300%": 3, "fill=3": 3} {
		f, err := ParseFields(text)
		must.Succeed(t, err)
		if got := f.Share("fill", 0.7, 0.01, 10); got != want || f.Err() != nil {
			t.Errorf("%q: %v, %v, want %v", text, got, f.Err(), want)
		}
	}
}

// FuzzParse verifies that numbers are in their range unless there is an error.
func FuzzParse(f *testing.F) {
	f.Add("mean=0.25,pods=3")
	f.Add("mean=,")
	f.Fuzz(func(t *testing.T, text string) {
		mean, pods, err := readFields(text)
		if err == nil && (!(mean >= 0 && mean <= 10) || pods < 1 || pods > 100) {
			t.Errorf("%q: %v, %v", text, mean, pods)
		}
	})
}
