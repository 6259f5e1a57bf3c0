package input

import (
	"fmt"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// assumptions lists what is assumed about a recording, one sentence each.
func (c *recordingConverter) assumptions(cluster *Cluster) []string {
	var list []string
	assume := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	assume("recorded from %s to %s: pods arrive when they were created, and run for as long as they ran once they have a node",
		c.Time(0).Format(time.RFC3339), c.Time(c.seconds).Format(time.RFC3339))
	if c.running > 0 {
		assume("%s had a node at the start and %s it", format.Of(c.running, "pod"), format.Form(c.running, "keeps", "keep"))
	}
	if c.rescheduled > 0 {
		rate := "all at the start"
		if c.options.Pack > 0 {
			rate = fmt.Sprintf("%d per second", c.options.Pack)
		}
		assume("%s had a node at the start and %s again, in the order of creation, %s",
			format.Of(c.rescheduled, "pod"), format.Form(c.rescheduled, "arrives", "arrive"), rate)
	}
	if c.neverScheduled > 0 {
		assume("%s never had a node in the recording: pending until deleted, unless there is a node that fits",
			format.Of(c.neverScheduled, "pod"))
	}
	c.assumeNodes(cluster, assume)
	assume("a pod uses what it used the same time after it was scheduled: what it got, not what it would have used on an idle node")
	if c.gaps > 0 {
		assume("%s missing: the value before each gap is repeated", format.PartAre(c.gaps, c.samples, "usage sample"))
	}
	if c.generated > 0 {
		assume("the usage of %s is not recorded, and generated", format.Part(c.generated, len(cluster.Pods), "pod"))
	}
	if c.noRequests {
		assume(noRequestsAssumption)
	}
	if c.withoutNode > 0 {
		assume("%s left out: the node is not in the recording at the time at which the pod was scheduled", format.Are(c.withoutNode, "pod"))
	}
	if c.unclaimed > 0 {
		assume("%s scheduled without volumes or devices whose claims are not in the recording", format.Are(c.unclaimed, "pod"))
	}
	for _, missing := range c.about.Missing {
		assume("missing in the recording: %s: %s", missing.What, missing.Why)
	}
	return append(list, cluster.notSimulated()...)
}

// assumeNodes adds what is assumed about nodes.
func (c *recordingConverter) assumeNodes(cluster *Cluster, assume func(format string, args ...any)) {
	appear, gone := 0, 0
	for i := range cluster.Nodes {
		if cluster.Nodes[i].Boot > 0 {
			appear++
		}
		if cluster.Nodes[i].Gone > 0 {
			gone++
		}
	}
	if appear+gone > 0 {
		assume("%s %s and %s removed as recorded; pods that are on a removed node are scheduled again",
			format.Of(appear, "node"), format.Form(appear, "appears", "appear"), format.Are(gone, "node"))
	}
	assume("labels, taints and amounts of nodes are those last recorded")
	if c.cordoned > 0 {
		assume("%s cordoned or not ready in the last recorded state, but not when pods were scheduled there: counted as schedulable",
			format.Are(c.cordoned, "node"))
	}
}

// notSimulated lists what kube-scheduler does for these pods and a run does not, one sentence each: preemption, the
// order of priorities, scheduling in groups, and claims for extended resources.
func (in *Cluster) notSimulated() []string {
	pods := in.Pods
	priorities, groups, arriving := map[int32]bool{}, 0, 0
	for i := range pods {
		spec := &pods[i].Object.Spec
		if spec.Priority != nil {
			priorities[*spec.Priority] = true
		} else {
			priorities[0] = true
		}
		if spec.NodeName != "" {
			continue
		}
		arriving++
		if spec.SchedulingGroup != nil {
			groups++
		}
	}
	var list []string
	if len(priorities) > 1 && arriving > 0 {
		list = append(list, fmt.Sprintf("pods have %d different priorities; preemption is not simulated, and pending pods are attempted "+
			"in the order of their arrival", len(priorities)))
	}
	if groups > 0 {
		list = append(list, fmt.Sprintf("%s of pod groups (spec.schedulingGroup) %s scheduled one by one",
			format.Of(groups, "pod"), format.Form(groups, "is", "are")))
	}
	if mapsExtendedResources(in.References) {
		list = append(list, "devices are allocated for resource claims, but not for extended resources that a device class provides")
	}
	return list
}
