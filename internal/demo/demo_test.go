package demo

import (
	"os"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/controlplane"
)

func TestMain(m *testing.M) {
	controlplane.RunIfChild()
	os.Exit(m.Run())
}

// Every scenario goes as it is told, through the real API server and the real
// scheduler; and what the what-if foretold is what came of it.
func TestScenarios(t *testing.T) {
	d, err := Start(t.Context(), Options{Load: LoadService, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	for _, s := range Scenarios {
		for _, profile := range []string{DefaultProfile, s.Profile} {
			t.Run(s.Name+"/"+profile, func(t *testing.T) {
				results, err := d.Run(t.Context(), s, profile)
				if err != nil {
					t.Fatal(err)
				}
				if err := Check(results); err != nil {
					t.Error(err)
				}
				for i, decision := range d.decisions.all()[:len(results)] {
					r := results[len(results)-1-i]
					foretold := decision.Scores.Selected
					if foretold == "" {
						foretold = Pending
					}
					if r.Want != Any && foretold != r.Node {
						t.Errorf("%s: foretold %s, came to %s: %s", r.Pod, foretold, r.Node, decision.Reason())
					}
				}
			})
		}
	}
}
