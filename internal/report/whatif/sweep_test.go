package whatif

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// swept has one scenario in which b is better, c worse and d no different.
//
//	a:  10 overload minutes with each of four seeds
//	b:   1 with each; c: 100 with each; d: 9, 11, 9, 11
func swept(t *testing.T) *result.Result {
	t.Helper()
	s := result.Scenario{Limits: "ratio=2", Usage: "cpu=bursts:mean=0.7;memory=beta:mean=0.5"}
	for name, minutes := range map[string][]float64{"a": {10, 10, 10, 10}, "b": {1, 1, 1, 1}, "c": {100, 100, 100, 100}, "d": {9, 11, 9, 11}} {
		p := result.Profile{Name: name}
		for seed, m := range minutes {
			p.Runs = append(p.Runs, result.Run{Seed: uint64(seed), Outcome: result.Outcome{OverloadMinutes: m, NodesUsed: m}})
		}
		s.Profiles = append(s.Profiles, p)
	}
	order := []string{"a", "b", "c", "d"}
	var sorted []result.Profile
	for _, name := range order {
		for _, p := range s.Profiles {
			if p.Name == name {
				sorted = append(sorted, p)
			}
		}
	}
	s.Profiles = sorted
	if err := s.Compare(); err != nil {
		t.Fatal(err)
	}
	return &result.Result{Profiles: order, Scenarios: []result.Scenario{s}}
}

func TestSweepSaysWhatIsBetterAndWorse(t *testing.T) {
	r := swept(t)
	var b strings.Builder
	if err := WriteSweep(&b, r, "overloadMinutes"); err != nil {
		t.Fatal(err)
	}
	want := "| overload, node minutes | a | b | c | d |\n|---|---:|---:|---:|---:|\n| ratio=2, bursts/beta | 10 | **1** | _100_ | 10 |\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if err := WriteSweep(&b, r, "nodesUsed"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `| 10 | 1\* | 100\* | 10 |`) {
		t.Errorf("a figure of which neither less nor more is better: %s", b.String())
	}
	if err := WriteSweep(&b, r, "speed"); err == nil || !strings.Contains(err.Error(), `"speed"`) {
		t.Errorf("a figure that is none: %v", err)
	}
}

func TestTally(t *testing.T) {
	got := Tally(swept(t), "overloadMinutes")
	want := []Count{{"b", 1, 0, 0}, {"c", 0, 0, 1}, {"d", 0, 1, 0}}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

// A dot for each profile but the first, filled where the difference is clear.
func TestDots(t *testing.T) {
	r := swept(t)
	r.Profiles[1] = nasty
	picture, err := Dots(r, "overloadMinutes")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(picture, "<script") {
		t.Error("a name is not escaped")
	}
	decoder, dots, filled := xml.NewDecoder(strings.NewReader(picture)), 0, 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "circle" {
			attributes := map[string]string{}
			for _, a := range start.Attr {
				attributes[a.Name.Local] = a.Value
			}
			if attributes["fill-opacity"] == "" {
				continue // of the legend
			}
			dots++
			if attributes["fill"] != "none" {
				filled++
			}
		}
	}
	if dots != 3 || filled != 2 {
		t.Errorf("%d dots, %d filled: want 3 and 2", dots, filled)
	}
	if _, err := Dots(r, "speed"); err == nil {
		t.Error("a figure that is none is drawn")
	}
}
