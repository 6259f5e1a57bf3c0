package whatif

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// sweep returns a result with one scenario, in which b is better than a, c worse and d not different:
//
//	a:  10 overload minutes with each of four seeds
//	b:   1 with each; c: 100 with each; d: 9, 11, 9, 11
func sweep(t *testing.T) *result.Result {
	t.Helper()
	s := result.Scenario{Limits: "ratio=2", Usage: "cpu=bursts:mean=0.7;memory=beta:mean=0.5"}
	order := []string{"a", "b", "c", "d"}
	for i, minutes := range [][]float64{{10, 10, 10, 10}, {1, 1, 1, 1}, {100, 100, 100, 100}, {9, 11, 9, 11}} {
		p := result.Profile{Name: order[i]}
		for seed, m := range minutes {
			p.Runs = append(p.Runs, result.Run{Seed: uint64(seed), Outcome: result.Outcome{OverloadMinutes: m, NodesUsed: m}})
		}
		s.Profiles = append(s.Profiles, p)
	}
	s.Compare()
	return &result.Result{Profiles: order, Scenarios: []result.Scenario{s}}
}

func TestWriteSweep(t *testing.T) {
	r := sweep(t)
	var b strings.Builder
	if err := WriteSweep(&b, r, figure(t, "overloadMinutes")); err != nil {
		t.Fatal(err)
	}
	want := "| overload, node minutes | a | b | c | d |\n|---|---:|---:|---:|---:|\n| ratio=2, bursts/beta | 10 | **1** | _100_ | 10 |\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if err := WriteSweep(&b, r, figure(t, "nodesUsed")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `| 10 | 1\* | 100\* | 10 |`) {
		t.Errorf("a figure without a better direction: %s", b.String())
	}
}

// TestDots checks that there is a dot for each profile but the first, filled if the difference is clear.
func TestDots(t *testing.T) {
	r := sweep(t)
	r.Profiles[1] = markup
	drawing := Dots(r, figure(t, "overloadMinutes"))
	if strings.Contains(drawing, "<script") {
		t.Error("a name is not escaped")
	}
	decoder, dots, filled := xml.NewDecoder(strings.NewReader(drawing)), 0, 0
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
				continue // A dot of the legend.
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
}
