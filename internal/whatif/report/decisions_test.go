package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

func TestNewScoreCell(t *testing.T) {
	tests := map[string]struct {
		score result.PluginScore
		want  scoreCell
	}{
		"unchanged": {result.PluginScore{Raw: 97, Score: 97, Weight: 1}, scoreCell{97, 97, "97", ""}},
		"weighted": {
			result.PluginScore{Raw: 50, Score: 50, Weight: 2},
			scoreCell{50, 50, "100", "50" + format.ThinSpace + "×" + format.ThinSpace + "2"},
		},
		"normalized": {
			result.PluginScore{Raw: -1188, Score: 7, Weight: 1},
			scoreCell{-1188, 7, "7", format.Minus + "1" + format.ThinSpace + "188" + format.ThinSpace + "→" + format.ThinSpace + "7"},
		},
		"normalized, weight": {
			result.PluginScore{Raw: 0, Score: 100, Weight: 3},
			scoreCell{
				0,
				100,
				"300",
				"0" + format.ThinSpace + "→" + format.ThinSpace + "100" + format.ThinSpace + "×" + format.ThinSpace + "3",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, newScoreCell(tc.score)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// decision returns the decision for a pod on a node with two plugins; one plugin scores all nodes 0.
func decision(node string, waited int64) result.Decision {
	d := result.Decision{
		Arrival: 7, Pod: "default/p", Node: node, WaitedSeconds: waited,
		CPURequest: 1500, MemoryRequest: 3 << 29, MemoryLimit: 3 << 30, Nodes: 5,
	}
	if node != "" {
		d.Feasible = 2
		d.Scores = []result.NodeScore{
			{
				Node:    node,
				Total:   40,
				Plugins: []result.PluginScore{{Name: "Scores", Raw: 40, Score: 40, Weight: 1}, {Name: "Zero", Weight: 2}},
			},
			{
				Node:    "other",
				Total:   41,
				Plugins: []result.PluginScore{{Name: "Scores", Raw: 41, Score: 41, Weight: 1}, {Name: "Zero", Weight: 2}},
			},
		}
	}
	return d
}

func TestPodViews(t *testing.T) {
	scenario := func(decisions ...[]result.Decision) *result.Scenario {
		s := &result.Scenario{}
		for i, d := range decisions {
			run := result.Run{TimeSeries: &result.TimeSeries{}, Decisions: d}
			s.Profiles = append(s.Profiles, result.Profile{Name: string(rune('a' + i)), Runs: []result.Run{run}})
		}
		return s
	}
	on := func(node string) []result.Decision { return []result.Decision{decision(node, 0)} }
	for name, tc := range map[string]struct {
		scenario  *result.Scenario
		placement string
		differs   bool
	}{
		"one profile":       {scenario(on("n1")), "on n1", false},
		"same node":         {scenario(on("n1"), on("n1")), "the same node with all profiles", false},
		"different nodes":   {scenario(on("n1"), on("n2"), on("n1")), "2 different nodes", true},
		"unschedulable":     {scenario(on(""), on("")), "unschedulable", false},
		"placed by one":     {scenario(on(""), on("n1")), "placed by some profiles, unschedulable with others", true},
		"recorded with one": {scenario(nil, on("n1")), "on n1", false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := podViews(tc.scenario)
			if len(pods) != 1 || pods[0].Placement != tc.placement || pods[0].Differs != tc.differs ||
				len(pods[0].Profiles) != len(tc.scenario.Profiles) {
				t.Errorf("%+v, want %s", pods, tc.placement)
			}
		})
	}
	pod := podViews(scenario(on("n1"), []result.Decision{decision("", 90)}, nil))[0]
	if want := "CPU 1.500, no limit; memory 1.50" + format.ThinSpace + "GiB, limit 3" + format.ThinSpace + "GiB"; pod.Resources != want {
		t.Errorf("resources %q, want %q", pod.Resources, want)
	}
	placed, pending, absent := pod.Profiles[0], pod.Profiles[1], pod.Profiles[2]
	if placed.Outcome != "on n1; 2 of 5 nodes feasible" || len(placed.Rows) != 1 || placed.Rows[0].Plugin != "Scores" ||
		placed.ZeroPlugins != "Zero" {
		t.Errorf("%+v", placed)
	}
	if placed.Note != "kube-scheduler did not score all nodes: a node with a higher score was not among them." {
		t.Errorf("the note does not explain why the node with the higher score was not selected: %q", placed.Note)
	}
	if pending.Outcome != "unschedulable after 90 s; 0 of 5 nodes feasible" || absent.Note == "" {
		t.Errorf("%+v, %+v", pending, absent)
	}
}
