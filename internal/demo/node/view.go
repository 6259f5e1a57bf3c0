package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/plugins"
)

// View returns the live page with the nodes, the pods without a node and the decisions.
func (d *Demo) View(ctx context.Context) (Live, error) {
	view := Live{Time: time.Now().Format(time.TimeOnly), Profiles: d.Profiles()}
	nodes, pods, err := d.env.State(ctx)
	if err != nil {
		return view, err
	}
	reading := d.load.Reading(ctx)
	isFresh := time.Since(reading.Time) <= demo.MaxLoadAge
	for i := range nodes {
		node := &nodes[i]
		if demo.IsProbe(node.Name) {
			continue
		}
		var bound []*v1.Pod
		for k := range pods {
			if pod := &pods[k]; pod.Spec.NodeName == node.Name && !resources.IsFinished(pod) {
				bound = append(bound, pod)
			}
		}
		var measured load.Node
		if isFresh {
			measured = reading.Nodes[node.Name]
		}
		view.Nodes = append(view.Nodes, viewNode(node, bound, measured))
	}
	for i := range pods {
		if pod := &pods[i]; pod.Spec.NodeName == "" && !demo.IsProbe(pod.Name) {
			view.Pending = append(view.Pending, LivePending{Pod: podName(pod), Reason: pendingReason(pod, view.Profiles)})
		}
	}
	for _, decision := range d.Decisions() {
		view.Decisions = append(view.Decisions, viewDecision(decision))
	}
	return view, nil
}

// podName returns the name of a pod, with its namespace unless that is the namespace of the demo.
func podName(pod *v1.Pod) string {
	if pod.Namespace == demo.Namespace {
		return pod.Name
	}
	return pod.Namespace + "/" + pod.Name
}

// viewNode returns a node with the sums that the plugins use.
func viewNode(node *v1.Node, pods []*v1.Pod, measured load.Node) LiveNode {
	out := LiveNode{Name: node.Name}
	bar := func(r resources.Resource, amount func(int64) string, u load.Utilization, has bool) {
		var sum resources.Sum
		for _, pod := range pods {
			amounts := resources.NewPod(pod)
			sum.Add(amounts.Get(r))
		}
		allocatable := r.AllocatableOf(node)
		limit := sum.Limit + sum.PartialLimit
		fraction := func(amount int64) float64 { return float64(amount) / float64(max(allocatable, 1)) }
		relative := risk.Load(u).RelativeTo(float64(r.CapacityOf(node)), float64(allocatable))
		out.Bars = append(out.Bars, LiveBar{
			Resource: string(r.Name()), Allocatable: amount(allocatable),
			Request: amount(sum.Request), RequestFraction: fraction(sum.Request),
			Limit: amount(limit), LimitFraction: fraction(limit), UnboundedPods: sum.Unbounded,
			HasLoad: has, LoadMean: relative.Mean, LoadStdDev: relative.StdDev,
		})
	}
	bar(resources.CPUResource, format.Cores, measured.CPU, measured.HasCPU)
	bar(resources.MemoryResource, format.Bytes, measured.Memory, measured.HasMemory)
	for _, pod := range pods {
		out.Pods = append(out.Pods, podName(pod))
	}
	slices.Sort(out.Pods)
	return out
}

// viewDecision returns a decision with the scores of the nodes.
func viewDecision(d Decision) LiveDecision {
	out := LiveDecision{
		Time: d.Time.Format(time.TimeOnly), Profile: d.Profile,
		Pod: d.Scores.Name, Node: d.Node, Default: d.Default, Reason: d.Scores.ReasonAgainst(d.Node, d.Default),
	}
	for _, node := range d.Scores.Nodes {
		if node.Feasible {
			out.Scores = append(out.Scores, LiveScore{Node: node.Name, Total: node.Total, Chosen: node.Name == d.Node})
		} else {
			out.Unfit++
		}
	}
	slices.SortStableFunc(out.Scores, func(a, b LiveScore) int { return cmp.Compare(b.Total, a.Total) })
	return out
}

// Profiles returns the profiles of the scheduler.
func (d *Demo) Profiles() []LiveProfile {
	var out []LiveProfile
	for i := range d.env.Scheduler.Profiles {
		profile := &d.env.Scheduler.Profiles[i]
		out = append(out, LiveProfile{Name: profile.SchedulerName, Plugins: scoredBy(profile)})
	}
	return out
}

// scoredBy returns the plugins of Plimsoll that a profile enables in addition to the default ones, or in
// place of them.
func scoredBy(profile *internalconfig.KubeSchedulerProfile) string {
	var names []string
	if profile.Plugins != nil {
		for _, plugin := range slices.Concat(profile.Plugins.MultiPoint.Enabled, profile.Plugins.Score.Enabled) {
			if slices.ContainsFunc(plugins.All, func(p plugins.Plugin) bool { return p.Name == plugin.Name }) {
				names = append(names, plugin.Name)
			}
		}
	}
	return cmp.Or(strings.Join(names, ", "), "the default plugins")
}

// pendingReason returns why a pod has no node.
func pendingReason(pod *v1.Pod, profiles []LiveProfile) string {
	if name := pod.Spec.SchedulerName; !slices.ContainsFunc(profiles, func(p LiveProfile) bool { return p.Name == name }) {
		return fmt.Sprintf("spec.schedulerName: no scheduler in this cluster has a profile %q, so the pod is never scheduled", name)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
			return cmp.Or(condition.Message, condition.Reason)
		}
	}
	return "waiting for the scheduler"
}
