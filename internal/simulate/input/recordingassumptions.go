package input

import (
	"fmt"
	"time"
)

// assumptions lists what is assumed about a recording, one sentence each.
func (c *recordingConverter) assumptions(cluster *Cluster) []string {
	var list []string
	assume := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	assume("recorded from %s to %s: pods arrive when they were created, and run for as long as they ran once they have a node",
		c.Time(0).Format(time.RFC3339), c.Time(c.seconds).Format(time.RFC3339))
	if c.running > 0 {
		assume("%d pods had a node at the start and keep it", c.running)
	}
	if c.rescheduled > 0 {
		rate := "all at the start"
		if c.options.Pack > 0 {
			rate = fmt.Sprintf("%d per second", c.options.Pack)
		}
		assume("%d pods had a node at the start and arrive again, in the order of their creation, %s", c.rescheduled, rate)
	}
	if c.neverScheduled > 0 {
		assume("%d pods never had a node in the recording: they wait until they were deleted, unless they fit", c.neverScheduled)
	}
	c.assumeNodes(cluster, assume)
	assume("a pod uses what it used the same time after it was scheduled: what it got, not what it would have used on an idle node")
	if c.gaps > 0 {
		assume("%d of %d samples of usage are missing: the value before each gap is repeated", c.gaps, c.samples)
	}
	if c.generated > 0 {
		assume("the usage of %d of %d pods is not recorded, and generated", c.generated, len(cluster.Pods))
	}
	if c.noRequests {
		assume(noRequestsAssumption)
	}
	if c.withoutNode > 0 {
		assume("%d pods are left out: their node is not in the recording at the time at which they were scheduled", c.withoutNode)
	}
	if c.unclaimed > 0 {
		assume("%d pods have volumes or devices whose claims are not in the recording, and are scheduled without them", c.unclaimed)
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
		assume("%d nodes appear and %d nodes are removed as recorded; pods that are on a removed node are scheduled again", appear, gone)
	}
	assume("labels, taints and amounts of nodes are those last recorded")
	if c.cordoned > 0 {
		assume("%d nodes are cordoned or not ready in their last recorded state, and were not when pods were scheduled on them: "+
			"they count as schedulable", c.cordoned)
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
		list = append(list, fmt.Sprintf("%d pods belong to pod groups (spec.schedulingGroup), and are scheduled one by one", groups))
	}
	if mapsExtendedResources(in.References) {
		list = append(list, "devices are allocated for resource claims, but not for extended resources that a device class provides")
	}
	return list
}
