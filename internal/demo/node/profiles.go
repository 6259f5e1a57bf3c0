package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
)

// Profiles returns the profiles of the scheduler.
func (d *Demo) Profiles() []page.LiveProfile {
	var out []page.LiveProfile
	for i := range d.env.Scheduler.Profiles {
		profile := &d.env.Scheduler.Profiles[i]
		out = append(out, page.LiveProfile{Name: profile.SchedulerName, Plugins: scoredBy(profile)})
	}
	return out
}

// scoredBy returns the score plugins that a profile enables in addition to the default ones, or in
// place of them.
func scoredBy(profile *internalconfig.KubeSchedulerProfile) string {
	var names []string
	if profile.Plugins != nil {
		for _, plugin := range profile.Plugins.Score.Enabled {
			names = append(names, plugin.Name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "the default plugins")
}

// pendingReason returns why a pod has no node.
func pendingReason(pod *v1.Pod, profiles []page.LiveProfile) string {
	if name := pod.Spec.SchedulerName; !slices.ContainsFunc(profiles, func(p page.LiveProfile) bool { return p.Name == name }) {
		return fmt.Sprintf("spec.schedulerName: no scheduler in this cluster has a profile %q, so the pod is never scheduled", name)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
			return cmp.Or(condition.Message, condition.Reason)
		}
	}
	return "waiting for the scheduler"
}
