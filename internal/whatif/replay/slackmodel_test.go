package replay

import (
	"math"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/slackpolicy"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestSlackModelAgrees compares the cost of nodes without slack and with a rate of 10 % in the example recording between the fast model of
// the search and a run: they have the same autoscaler and differ by less than a tenth, because kube-scheduler also spreads the pods of a
// workload.
func TestSlackModelAgrees(t *testing.T) {
	in, err := recording.Source{Recording: "../../../examples/recording/week.plrec"}.Input(1, recording.Limits{})
	must.Succeed(t, err)
	for _, slack := range []bool{false, true} {
		config := autoscalerConfig(t, "shape=16x64,boot=120,cost=0.80")
		if slack {
			withSlack(config, "10%")
		}
		history, _, err := config.Spec.History(&in, 0)
		must.Succeed(t, err)
		node, err := config.Spec.NodeType(&in)
		must.Succeed(t, err)
		simulated, err := slackpolicy.Simulate(history, node, config.Slack)
		must.Succeed(t, err)
		o := options(t, "default", "constant:mean=0.5", 1)
		o.Autoscaler = config
		run := outcomeOf(t, in, o).Scaling.Cost
		if math.Abs(simulated.Cost/run-1) > 0.1 {
			t.Errorf("slack %t: cost %.2f, in a run %.2f", slack, simulated.Cost, run)
		}
	}
}
