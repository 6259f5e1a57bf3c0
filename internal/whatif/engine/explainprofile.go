package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// Scheduler is the configuration that pods are evaluated with.
type Scheduler struct {
	Config *internalconfig.KubeSchedulerConfiguration
	// Source says where the configuration is from, such as the name of a file.
	Source string
	// ProfileName selects a profile by its scheduler name. If it is empty, the profile in the pod's
	// spec.schedulerName is selected, or else the only profile.
	ProfileName string
	// AnyPod is set if the profile is to evaluate pods of other schedulers as well.
	AnyPod bool
}

// Profile is the profile that a pod is evaluated with.
type Profile struct {
	// SchedulerName is the scheduler name of the profile.
	SchedulerName string `json:"schedulerName"`
	// Source says where the configuration of the profile is from.
	Source string `json:"source"`
	// Requested is the pod's spec.schedulerName.
	Requested string `json:"requested"`
}

// Has reports whether the configuration has a profile with the scheduler name.
func (s Scheduler) Has(name string) bool { return slices.Contains(s.names(), name) }

// names returns the scheduler names of the profiles.
func (s Scheduler) names() []string {
	var names []string
	for i := range s.Config.Profiles {
		names = append(names, s.Config.Profiles[i].SchedulerName)
	}
	return names
}

// ProfileOf returns the profile that a pod is evaluated with. The error lists the profiles if none is
// selected.
func (s Scheduler) ProfileOf(pod *v1.Pod) (Profile, error) {
	profile := Profile{Requested: cmp.Or(pod.Spec.SchedulerName, v1.DefaultSchedulerName), Source: s.Source}
	names := s.names()
	profile.SchedulerName = cmp.Or(s.ProfileName, profile.Requested)
	if slices.Contains(names, profile.SchedulerName) {
		return profile, nil
	}
	if s.ProfileName == "" && len(names) == 1 {
		profile.SchedulerName = names[0]
		return profile, nil
	}
	allowed := strings.Join(names, ", ")
	if s.ProfileName != "" {
		return profile, fmt.Errorf(
			"--scheduler-name: invalid value %q: must be one of %s, the profiles of %s",
			s.ProfileName,
			allowed,
			s.Source,
		)
	}
	return profile, fmt.Errorf("pod %s/%s: %s has no profile for spec.schedulerName %q: --scheduler-name must be one of %s",
		pod.Namespace, pod.Name, s.Source, profile.SchedulerName, allowed)
}

// Warning returns a warning if the profile belongs to another scheduler than the pod's and was not
// selected for pods of any scheduler, otherwise "".
func (s Scheduler) Warning(profile Profile) string {
	if profile.SchedulerName == profile.Requested || s.ProfileName != "" || s.AnyPod {
		return ""
	}
	return fmt.Sprintf("the profile of scheduler %q is unknown: evaluated with profile %s of %s; "+
		"--config sets the configuration of the scheduler, --profile a built-in profile",
		profile.Requested, profile.SchedulerName, s.Source)
}
