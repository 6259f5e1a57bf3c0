package recording

import (
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// assume adds the assumptions about a recording.
func (c *partConverter) assume(in *Input) {
	in.assume("recorded from %s to %s: pods arrive when they were created, and run for as long as they ran once they have a node",
		c.Time(0).Format(time.RFC3339), c.Time(c.seconds).Format(time.RFC3339))
	if c.running > 0 {
		in.assume("%s had a node at the start and %s it", format.Of(c.running, "pod"), format.Form(c.running, "keeps", "keep"))
	}
	if c.rescheduled > 0 {
		in.assume("%s had a node at the start and %s again, in the order of creation, %s",
			format.Of(c.rescheduled, "pod"), format.Form(c.rescheduled, "arrives", "arrive"), c.source.rate())
	}
	if c.neverScheduled > 0 {
		in.assume("%s never had a node in the recording: pending until deleted, unless there is a node that fits",
			format.Of(c.neverScheduled, "pod"))
	}
	c.assumeNodes(in)
	in.assume("a pod uses what it used the same time after it was scheduled: what it got, not what it would have used on an idle node")
	if c.gaps > 0 {
		in.assume("%s missing: the value before each gap is repeated", format.PartAre(c.gaps, c.samples, "usage sample"))
	}
	if c.generated > 0 {
		in.assume("the usage of %s is not recorded, and generated", format.Part(c.generated, len(in.Pods), "pod"))
	}
	if c.noRequests {
		in.assume(noRequestsAssumption)
	}
	if c.withoutNode > 0 {
		in.assume(
			"%s left out: the node is not in the recording at the time at which the pod was scheduled",
			format.Are(c.withoutNode, "pod"),
		)
	}
	if c.unclaimed > 0 {
		in.assume("%s scheduled without volumes or devices whose claims are not in the recording", format.Are(c.unclaimed, "pod"))
	}
	for _, missing := range c.about.Missing {
		in.assume("missing in the recording: %s: %s", missing.What, missing.Why)
	}
	in.assumeNotSimulated()
}

// assumeNodes adds the assumptions about nodes.
func (c *partConverter) assumeNodes(in *Input) {
	appear, gone := 0, 0
	for i := range in.Nodes {
		if in.Nodes[i].Appeared > 0 {
			appear++
		}
		if in.Nodes[i].Gone != Never {
			gone++
		}
	}
	if appear+gone > 0 {
		in.assume("%s %s and %s removed as recorded; pods that are on a removed node are scheduled again",
			format.Of(appear, "node"), format.Form(appear, "appears", "appear"), format.Are(gone, "node"))
	}
	in.assume("labels, taints and amounts of nodes are those last recorded")
	if c.cordoned > 0 {
		in.assume("%s cordoned or not ready in the last recorded state, but not when pods were scheduled there: counted as schedulable",
			format.Are(c.cordoned, "node"))
	}
}

// assumeNotSimulated adds actions of kube-scheduler for these pods that a run does not simulate:
// preemption, the order of priorities, scheduling in groups, and claims for extended resources.
func (in *Input) assumeNotSimulated() {
	priorities, groups, arriving := map[int32]bool{}, 0, 0
	for i := range in.Pods {
		spec := &in.Pods[i].Object.Spec
		priority := int32(0)
		if spec.Priority != nil {
			priority = *spec.Priority
		}
		priorities[priority] = true
		if spec.NodeName != "" {
			continue
		}
		arriving++
		if spec.SchedulingGroup != nil {
			groups++
		}
	}
	if len(priorities) > 1 && arriving > 0 {
		in.assume("pods have %d different priorities; preemption is not simulated, and pending pods are attempted "+
			"in the order of their arrival", len(priorities))
	}
	if groups > 0 {
		in.assume("%s of pod groups (spec.schedulingGroup) %s scheduled one by one",
			format.Of(groups, "pod"), format.Form(groups, "is", "are"))
	}
	if mapsExtendedResources(in.References) {
		in.assume("devices are allocated for resource claims, but not for extended resources that a device class provides")
	}
}
