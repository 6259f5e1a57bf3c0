package node

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

func TestPendingReason(t *testing.T) {
	limits := &internalconfig.Plugins{Score: internalconfig.PluginSet{Enabled: []internalconfig.Plugin{{Name: "NodeResourcesLimits"}}}}
	predicted := &internalconfig.Plugins{MultiPoint: internalconfig.PluginSet{
		Enabled: []internalconfig.Plugin{{Name: "NodeResourcesFit"}, {Name: "PredictedUtilization"}},
	}}
	d := &Demo{env: &demo.Environment{Scheduler: &internalconfig.KubeSchedulerConfiguration{
		Profiles: []internalconfig.KubeSchedulerProfile{
			{SchedulerName: demo.DefaultProfile},
			{SchedulerName: "plimsoll-limits", Plugins: limits},
			{SchedulerName: "plimsoll-scheduler", Plugins: predicted},
		},
	}}}
	condition := func(reason, message string) v1.PodStatus {
		return v1.PodStatus{Conditions: []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: reason, Message: message},
		}}
	}
	for name, tc := range map[string]struct {
		profile string
		status  v1.PodStatus
		want    string
	}{
		"no such profile":   {"mine", v1.PodStatus{}, `spec.schedulerName: no scheduler in this cluster has a profile "mine", so the pod is never scheduled`},
		"unschedulable":     {"plimsoll-limits", condition("Unschedulable", "0/6 nodes are available"), "0/6 nodes are available"},
		"no message":        {demo.DefaultProfile, condition("SchedulingGated", ""), "SchedulingGated"},
		"not processed yet": {demo.DefaultProfile, v1.PodStatus{}, "waiting for the scheduler"},
	} {
		if got := pendingReason(&v1.Pod{Spec: v1.PodSpec{SchedulerName: tc.profile}, Status: tc.status}, d.Profiles()); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := d.Profiles(); got[0].Plugins != "the default plugins" || got[1].Plugins != "NodeResourcesLimits" ||
		got[2].Plugins != "PredictedUtilization" {
		t.Errorf("profiles %v", got)
	}
}

// TestViewDecision expects scores in descending order, and a reason in relation to the node of the default profile rather than
// to the second best node.
func TestViewDecision(t *testing.T) {
	score := func(name string, total int64) engine.NodeScores {
		return engine.NodeScores{
			Name: name, Feasible: true, Total: total, Plugins: map[string]engine.PluginScore{"P": {Raw: total, Score: total, Weight: 1}},
		}
	}
	decision := Decision{Node: "best", Default: "byDefault", Scores: engine.PodScores{Nodes: []engine.NodeScores{
		score("byDefault", 10), score("second", 40), score("best", 50), {Name: "small", Reason: "Insufficient cpu"},
	}}}
	got := viewDecision(decision)
	var order []string
	for _, s := range got.Scores {
		order = append(order, s.Node)
	}
	if !slices.Equal(order, []string{"best", "second", "byDefault"}) || got.Unfit != 1 || !got.Scores[0].Chosen {
		t.Errorf("scores %+v, %d nodes that do not fit", got.Scores, got.Unfit)
	}
	if want := "best scores 50, byDefault scores 10: P +40 (50 against 10)."; got.Reason != want {
		t.Errorf("reason %q, want %q", got.Reason, want)
	}
	decision.Node = "second"
	if got := viewDecision(decision); !strings.HasSuffix(got.Reason, " The scores have changed since the pod was scheduled.") {
		t.Errorf("reason %q does not say that another node has a higher score", got.Reason)
	}
}
