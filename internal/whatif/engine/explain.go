package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// State is a cluster at a point in time.
type State struct {
	Objects *manifest.Objects
	// Load is nil if the load is unknown.
	Load *load.Reading
	// Now is the time from which the age of the load is computed.
	Now time.Time
}

// Engine returns a scheduler over the cluster. It runs until ctx ends.
func (s State) Engine(ctx context.Context, scheduler Scheduler) (*Engine, error) {
	cluster := Cluster{Nodes: s.Objects.Nodes, Running: s.Objects.Running, References: s.Objects.Referred()}
	e, err := New(ctx, cluster, Options{Config: scheduler.Config, Load: s.Load, Now: s.Now})
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
	others := *state.Objects
	others.Running = slices.DeleteFunc(slices.Clone(others.Running), func(other *v1.Pod) bool {
		return other.Namespace == pod.Namespace && other.Name == pod.Name
	})
	state.Objects = &others
	nodes, err := state.Engine(ctx, scheduler)
	if err != nil {
		return nil, err
	}
	pending := pod.DeepCopy()
	pending.Spec.NodeName = ""
	pending.Status.NominatedNodeName = ""
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
	subject := e.Selected
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
		e.Reason = fmt.Sprintf("It is on %s, and %s would be selected now: ", e.Node, e.Selected)
	}
	why := e.Scores.Reason(subject)
	if e.Reason != "" && !strings.HasPrefix(why, subject+" ") {
		why = strings.ToLower(why[:1]) + why[1:] // continues the sentence
	}
	e.Reason += why
	if gates := len(pod.Spec.SchedulingGates); gates > 0 && pod.Spec.NodeName == "" {
		e.Reason += fmt.Sprintf(" It has %d scheduling gates, and is not scheduled until they are removed.", gates)
	}
}
