package spec

import (
	"slices"
	"testing"
)

// read parses a text with one key of each type.
func read(text string) (float64, int, []float64, error) {
	f, err := Parse(text)
	if err != nil {
		return 0, 0, nil, err
	}
	mean, pods, ratio := f.Float("mean", 0.5, 0, 10), f.Int("pods", 7, 1, 100), f.Floats("ratio", 1, 10)
	return mean, pods, ratio, f.Err()
}

func TestRead(t *testing.T) {
	tests := map[string]struct {
		mean  float64
		pods  int
		ratio []float64
	}{
		"":                                {0.5, 7, nil},
		" ":                               {0.5, 7, nil},
		"mean=0.25":                       {0.25, 7, nil},
		" pods = 3 , mean=1e-1":           {0.1, 3, nil},
		"ratio=1+1.5+2+4,mean=0,pods=100": {0, 100, []float64{1, 1.5, 2, 4}},
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			mean, pods, ratio, err := read(text)
			if err != nil || mean != want.mean || pods != want.pods || !slices.Equal(ratio, want.ratio) {
				t.Errorf("%v, %v, %v, %v, want %+v", mean, pods, ratio, err, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]string{
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
		"ratio=2+1":         `ratio: invalid value "2+1": must be numbers from 1 to 10 in rising order, with + between them`,
		"ratio=1++2":        `ratio: invalid value "1++2": must be numbers from 1 to 10 in rising order, with + between them`,
		"node=3":            `unknown key "node": must be one of mean, pods, ratio`,
		"mean=much,node=3":  `unknown key "node": must be one of mean, pods, ratio`,
		"mean=much,pods=no": `mean: invalid value "much": must be a number from 0 to 10`,
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			if _, _, _, err := read(text); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
	if _, err := Parse(string(make([]byte, MaxLength+1))); err == nil {
		t.Error("a text longer than MaxLength is accepted")
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"": 0.7, "fill=0.9": 0.9, "fill=90%": 0.9, "fill=300%": 3, "fill=3": 3} {
		f, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Share("fill", 0.7, 0.01, 10); got != want || f.Err() != nil {
			t.Errorf("%q: %v, %v, want %v", text, got, f.Err(), want)
		}
	}
}

// FuzzParse verifies that numbers are in their range unless there is an error.
func FuzzParse(f *testing.F) {
	f.Add("mean=0.25,pods=3,ratio=1+2")
	f.Add("mean=,")
	f.Fuzz(func(t *testing.T, text string) {
		mean, pods, ratio, err := read(text)
		if err == nil && (!(mean >= 0 && mean <= 10) || pods < 1 || pods > 100 || !slices.IsSorted(ratio)) {
			t.Errorf("%q: %v, %v, %v", text, mean, pods, ratio)
		}
	})
}
