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
func (d *Demo) pendingReason(pod *v1.Pod) string {
	if reason := unknownProfile(pod.Spec.SchedulerName, d.Profiles()); reason != "" {
		return reason
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
			return cmp.Or(condition.Message, condition.Reason)
		}
	}
	return "waiting for the scheduler"
}

// unknownProfile returns why a pod with this scheduler name is never scheduled, empty if the name is
// that of a profile.
func unknownProfile(name string, profiles []page.LiveProfile) string {
	var names []string
	for _, profile := range profiles {
		names = append(names, profile.Name)
	}
	if slices.Contains(names, name) {
		return ""
	}
	return fmt.Sprintf(
		"spec.schedulerName: no scheduler in this cluster has a profile %q, so the pod is never scheduled; the profiles are %s",
		name,
		strings.Join(names, ", "),
	)
}
