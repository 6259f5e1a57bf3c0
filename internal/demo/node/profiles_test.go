package node

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

func TestPendingReason(t *testing.T) {
	limits := &internalconfig.Plugins{Score: internalconfig.PluginSet{Enabled: []internalconfig.Plugin{{Name: "NodeResourcesLimits"}}}}
	d := &Demo{env: &demo.Environment{Scheduler: &internalconfig.KubeSchedulerConfiguration{
		Profiles: []internalconfig.KubeSchedulerProfile{
			{SchedulerName: demo.DefaultProfile}, {SchedulerName: "plimsoll-limits", Plugins: limits},
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
	if got := d.Profiles(); got[0].Plugins != "the default plugins" || got[1].Plugins != "NodeResourcesLimits" {
		t.Errorf("profiles %v", got)
	}
}
