package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// State is a cluster at a point in time.
type State struct {
	Objects *manifest.Objects
	// Load is nil if the load is unknown.
	Load *load.Reading
	// Usage is nil if the usage of pods is unknown.
	Usage *load.PodReading
	// Now is the time from which the age of the load is computed, the current time if zero.
	Now time.Time
}

// Engine returns a scheduler over the cluster. It runs until ctx ends.
func (s State) Engine(ctx context.Context, scheduler Scheduler) (*Engine, error) {
	cluster := Cluster{Nodes: s.Objects.Nodes, Running: s.Objects.Running, References: s.Objects.Referred()}
	for _, pod := range s.Objects.Pending {
		if pod.Status.NominatedNodeName != "" && pod.DeletionTimestamp == nil {
			cluster.Nominated = append(cluster.Nominated, pod)
		}
	}
	options := Options{Config: scheduler.Config, Load: s.Load, Usage: s.Usage}
	if !s.Now.IsZero() {
		options.Clock = func() time.Time { return s.Now }
	}
	e, err := New(ctx, cluster, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", scheduler.Source, err)
	}
	return e, nil
}

// Explanation is the evaluation of all nodes for a pod as if it were pending.
type Explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Profile is the profile that the pod is evaluated with.
	Profile Profile `json:"profile"`
	// Node is the node of the pod, empty if it has none.
	Node string `json:"node"`
	// Selected is the node that the scheduler selects now, empty if no node is feasible.
	Selected string `json:"selected"`
	// Stays reports whether no node is better than the node of the pod.
	Stays bool `json:"stays"`
	// Reason explains the result in one sentence.
	Reason string `json:"reason"`

	// Scores are the scores of all nodes in the order of the input.
	Scores PodScores `json:"-"`
}

// Pod evaluates all nodes for a pod. If the state has a pod with the same name, that pod is removed first.
func Pod(ctx context.Context, state State, scheduler Scheduler, pod *v1.Pod) (*Explanation, error) {
	profile, err := scheduler.ProfileOf(pod)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nodes, err := state.Engine(ctx, scheduler)
	if err != nil {
		return nil, err
	}
	for _, other := range state.Objects.Running { // after the plugins have learned its usage
		if _, known := nodes.position[other.Spec.NodeName]; known && other.Namespace == pod.Namespace && other.Name == pod.Name {
			if _, err := nodes.UnassignPod(ctx, other); err != nil {
				return nil, err
			}
		}
	}
	pending := pod.DeepCopy()
	pending.Spec.NodeName = ""
	if pod.Spec.NodeName != "" {
		pending.Status.NominatedNodeName = ""
	}
	pending.DeletionTimestamp = nil
	scores, err := nodes.Score(ctx, pending, profile.SchedulerName)
	if err != nil {
		return nil, err
	}
	e := &Explanation{
		Namespace: pod.Namespace, Name: pod.Name, Profile: profile, Node: pod.Spec.NodeName, Selected: scores.Selected, Scores: scores,
	}
	e.setReason(pod)
	return e, nil
}

// total returns the total of a feasible node, -1 for any other.
func (e *Explanation) total(name string) int64 {
	for _, node := range e.Scores.Nodes {
		if node.Name == name && node.Feasible {
			return node.Total
		}
	}
	return -1
}

// setReason compares the node of the pod with the selected node.
func (e *Explanation) setReason(pod *v1.Pod) {
	subject, rival := e.Selected, ""
	switch {
	case e.Node == "" && e.Selected == "":
	case e.Node == "":
		e.Reason = fmt.Sprintf("The scheduler would select %s: ", e.Selected)
	case e.Selected == "":
		e.Reason = fmt.Sprintf("It is on %s, which is not feasible now: ", e.Node)
	case e.total(e.Node) == e.total(e.Selected):
		e.Stays, subject = true, e.Node
		e.Reason = fmt.Sprintf("It is on %s, which has the highest total, like others: ", e.Node)
		if e.Node == e.Selected {
			e.Reason = fmt.Sprintf("It is on %s, which would be selected again: ", e.Node)
		}
	default:
		rival = e.Node
		e.Reason = fmt.Sprintf("It is on %s, and %s would be selected now: ", e.Node, e.Selected)
	}
	why := e.Scores.ReasonAgainst(subject, rival)
	if e.Reason != "" && !strings.HasPrefix(why, subject+" ") {
		why = strings.ToLower(why[:1]) + why[1:] // continues the sentence
	}
	e.Reason += why
	if len(pod.Spec.SchedulingGates) > 0 && pod.Spec.NodeName == "" {
		e.Reason += " It is not scheduled until its scheduling gates are removed."
	}
}

// Scheduler is the configuration that pods are evaluated with.
type Scheduler struct {
	Config *internalconfig.KubeSchedulerConfiguration
	// Text is the configuration in YAML, of a published configuration only.
	Text []byte
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
		return profile, fmt.Errorf("--scheduler-name: invalid value %q: must be one of %s, the profiles of %s", s.ProfileName, allowed,
			s.Source)
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

// Limitations returns a sentence for each action of kube-scheduler that an evaluation of the pod does not simulate:
// scheduling of a pod group as a whole, and preemption of pods of lower priority if the pod fits on no node. selected is
// the node that the evaluation selected.
func Limitations(pod *v1.Pod, selected string, running []*v1.Pod) []string {
	var list []string
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		list = append(list, fmt.Sprintf("pod %s: evaluated alone, while kube-scheduler schedules its pod group %s as a whole",
			resources.Name(pod), *group.PodGroupName))
	}
	for _, gate := range pod.Spec.SchedulingGates {
		list = append(list, fmt.Sprintf("pod %s: has the scheduling gate %s: kube-scheduler does not schedule it",
			resources.Name(pod), gate.Name))
	}
	if pod.DeletionTimestamp != nil {
		list = append(list, fmt.Sprintf("pod %s: is being deleted: kube-scheduler does not schedule it", resources.Name(pod)))
	}
	if selected != "" || pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == v1.PreemptNever {
		return list
	}
	lower := 0
	for _, other := range running {
		if corev1helpers.PodPriority(other) < corev1helpers.PodPriority(pod) {
			lower++
		}
	}
	if lower > 0 {
		list = append(list,
			fmt.Sprintf("pod %s: preemption is not evaluated; %d running pods have a lower priority", resources.Name(pod), lower))
	}
	return list
}
