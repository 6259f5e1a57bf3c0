package whatif

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

func TestCellOf(t *testing.T) {
	tests := map[string]struct {
		score result.PluginScore
		want  scoreCell
	}{
		"as it is":           {result.PluginScore{Raw: 97, Score: 97, Weight: 1}, scoreCell{97, 97, "97", ""}},
		"weighted":           {result.PluginScore{Raw: 50, Score: 50, Weight: 2}, scoreCell{50, 50, "100", "50" + thin + "×" + thin + "2"}},
		"normalised":         {result.PluginScore{Raw: -1188, Score: 7, Weight: 1}, scoreCell{-1188, 7, "7", minus + "1" + thin + "188" + thin + "→" + thin + "7"}},
		"normalised, weight": {result.PluginScore{Raw: 0, Score: 100, Weight: 3}, scoreCell{0, 100, "300", "0" + thin + "→" + thin + "100" + thin + "×" + thin + "3"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, cellOf(tc.score)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// decided is a pod that went to a node, of which a plugin has something to say and
// another has not.
func decided(node string, waited int64) result.Decision {
	d := result.Decision{Arrival: 7, Pod: "default/p", Node: node, WaitedSeconds: waited, CPURequest: 1500, MemoryRequest: 3 << 29, MemoryLimit: 3 << 30, Nodes: 5}
	if node != "" {
		d.Feasible = 2
		d.Scores = []result.NodeScore{
			{Node: node, Total: 40, Plugins: []result.PluginScore{{Name: "Says", Raw: 40, Score: 40, Weight: 1}, {Name: "Silent", Weight: 2}}},
			{Node: "other", Total: 41, Plugins: []result.PluginScore{{Name: "Says", Raw: 41, Score: 41, Weight: 1}, {Name: "Silent", Weight: 2}}},
		}
	}
	return d
}

func TestPodsBy(t *testing.T) {
	with := func(decisions ...[]result.Decision) *result.Scenario {
		s := &result.Scenario{}
		for i, d := range decisions {
			s.Profiles = append(s.Profiles, result.Profile{Name: string(rune('a' + i)), Runs: []result.Run{{Decisions: d}}})
		}
		return s
	}
	at := func(node string) []result.Decision { return []result.Decision{decided(node, 0)} }
	for name, tc := range map[string]struct {
		scenario *result.Scenario
		where    string
		differ   bool
	}{
		"one profile":       {with(at("n1")), "on n1", false},
		"alike":             {with(at("n1"), at("n1")), "the same node with all", false},
		"apart":             {with(at("n1"), at("n2"), at("n1")), "2 different nodes", true},
		"nowhere":           {with(at(""), at("")), "no node", false},
		"somewhere or not":  {with(at(""), at("n1")), "a node with some profiles, none with others", true},
		"recorded with one": {with(nil, at("n1")), "on n1", false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := podsBy(tc.scenario)
			if len(pods) != 1 || pods[0].Where != tc.where || pods[0].Differ != tc.differ || len(pods[0].Profiles) != len(tc.scenario.Profiles) {
				t.Errorf("%+v, want %s", pods, tc.where)
			}
		})
	}
	pod := podsBy(with(at("n1"), []result.Decision{decided("", 90)}, nil))[0]
	if want := "CPU 1.500, no limit; memory 1.50" + thin + "GiB, limit 3" + thin + "GiB"; pod.Asks != want {
		t.Errorf("asks %q, want %q", pod.Asks, want)
	}
	placed, waits, absent := pod.Profiles[0], pod.Profiles[1], pod.Profiles[2]
	if placed.Outcome != "on n1; it fitted 2 of 5 nodes" || len(placed.Rows) != 1 || placed.Rows[0].Plugin != "Says" || placed.Nothing != "Silent" {
		t.Errorf("%+v", placed)
	}
	if placed.Note != "A node that scores higher was not among those that kube-scheduler looked at." {
		t.Errorf("it does not say why the better node was not taken: %q", placed.Note)
	}
	if waits.Outcome != "no node after 90 s; it fitted 0 of 5 nodes" || absent.Note == "" {
		t.Errorf("%+v, %+v", waits, absent)
	}
}

func TestBandOf(t *testing.T) {
	for distance, want := range map[float64]int{0: 0, 0.1: 0, 0.101: 1, 0.2: 1, 0.201: 2, 1: 2} {
		if got := bandOf(distance); got != want {
			t.Errorf("%v: band %d, want %d", distance, got, want)
		}
	}
}
