package resources

import (
	"strings"
	"testing"
)

// pairs has a field of each type that texts have.
type pairs struct {
	Mean  float64  `json:"mean" range:"0,10"`
	Pods  int      `json:"pods" range:"1,100"`
	Names []string `json:"names"`
	Name  string   `json:"name"`
}

func TestDecodePairs(t *testing.T) {
	for text, want := range map[string]pairs{
		"":                      {Mean: 0.5, Pods: 7},
		" ":                     {Mean: 0.5, Pods: 7},
		" pods = 3 , mean=1e-1": {Mean: 0.1, Pods: 3},
		"mean=.5,pods=100":      {Mean: 0.5, Pods: 100},
		"mean=90%":              {Mean: 0.9, Pods: 7},
		"name=5,names=a+5":      {Mean: 0.5, Pods: 7, Name: "5", Names: []string{"a", "5"}},
	} {
		got := pairs{Mean: 0.5, Pods: 7}
		_, err := DecodePairs(text, &got)
		if err != nil || got.Mean != want.Mean || got.Pods != want.Pods || got.Name != want.Name || len(got.Names) != len(want.Names) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"mean":          `invalid value "mean": must be key=value pairs separated by commas`,
		"mean=1,":       `invalid value "": must be key=value pairs separated by commas`,
		"=1":            `invalid value "=1": must be key=value pairs separated by commas`,
		"mean=":         `invalid value "mean=": must be key=value pairs separated by commas`,
		"mean=1,mean=2": `invalid value "mean=2": must be key=value pairs separated by commas, each key once`,
		"mean=much":     "mean: json: cannot unmarshal string into Go struct field pairs.mean of type float64",
		"mean=NaN":      "mean: json: cannot unmarshal string into Go struct field pairs.mean of type float64",
		"mean=1e999":    "mean: json: cannot unmarshal string into Go struct field pairs.mean of type float64",
		"mean=-0.1":     "mean: invalid value -0.1: must be from 0 to 10",
		"pods=1.5":      "pods: json: cannot unmarshal string into Go struct field pairs.pods of type int",
		"pods=0":        "pods: invalid value 0: must be from 1 to 100",
		"node=3":        `unknown field "node"`,
		"pod=3":         `unknown field "pod"; did you mean pods?`,

		strings.Repeat("pods=3,", 1000): "found 7000 bytes: must be at most 4096",
	} {
		if _, err := DecodePairs(text, &pairs{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
	}
}

// FuzzDecodePairs verifies that numbers are in their range unless there is an error.
func FuzzDecodePairs(f *testing.F) {
	f.Add("mean=0.25,pods=3")
	f.Add("mean=,")
	f.Fuzz(func(t *testing.T, text string) {
		got := pairs{Pods: 7}
		if _, err := DecodePairs(text, &got); err == nil && (!(got.Mean >= 0 && got.Mean <= 10) || got.Pods < 1 || got.Pods > 100) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
