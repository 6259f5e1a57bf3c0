package recording

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Part is a recording, or a part of it, as the input of runs. It is immutable.
type Part struct {
	about About
	// from and seconds are the part: its start in seconds since About.From, and its length.
	from, seconds int64
	// nodes and pods exist within the part. Their times are in seconds since its start. None of the nodes appears before.
	nodes   []Node
	pods    []Pod
	objects *manifest.Objects
	// cordoned is the number of nodes that are cordoned or not ready in their last recorded state, but not when the scheduler selected
	// them.
	cordoned int
	// unclaimed is the number of pods with volumes or devices whose claims the recording lacks.
	unclaimed int
	// generated is Recording.Generated.
	generated []string
	// demand is how the demand of the pods was estimated.
	demand demand
	// isInstant is set for manifests and snapshots, which have no length.
	isInstant bool
}

// Part prepares the part of a recording from one time to another, in seconds since its start; to is 0 for
// its end. The part has a whole number of steps of the simulation. It returns an error if the part is too short or
// an object is invalid.
func (r *Recording) Part(from, to int64) (*Part, error) {
	const step = 60
	if r.About.isSnapshot() {
		return nil, errors.New("found a snapshot: must be a recording over a time")
	}
	if to == 0 {
		to = r.About.Seconds()
	}
	in := &Part{about: r.About, from: from, seconds: (to - from) / step * step, generated: r.Generated}
	if in.seconds < step {
		return nil, fmt.Errorf("found %d s from second %d to %d: must be at least %d s", max(to-from, 0), from, to, step)
	}
	var err error
	if in.objects, err = manifest.ReadReferred(r.documents(isOfCluster)); err != nil {
		return nil, err
	}
	in.objects.Kubernetes = r.About.Kubernetes
	in.addPods(r)
	in.addNodes(r)
	if in.generated == nil && !slices.ContainsFunc(r.About.Sources, isGenerated) {
		in.demand = estimateDemand(in.nodes, in.pods, int(from/int64(r.About.Step)), int((from+in.seconds)/int64(r.About.Step))+1)
	}
	return in, nil
}

// isGenerated reports whether a source of a recording is a generator, whose usage is demand.
func isGenerated(source string) bool { return strings.HasPrefix(source, "generated: ") }

// addPods adds the pods that exist within the part.
func (in *Part) addPods(r *Recording) {
	references := manifest.NewReferences(in.objects.Others)
	uids := map[types.UID]bool{}
	for i := range r.Pods {
		p := r.Pods[i]
		p.Created, p.Scheduled, p.Started, p.Ended = p.Created-in.from, in.since(p.Scheduled), in.since(p.Started), in.since(p.Ended)
		if p.Ended <= 0 || p.Created >= in.seconds {
			continue
		}
		if p.Scheduled == Never {
			p.Node = "" // it may have a node after the end of the part
		}
		if in.pods = append(in.pods, p); in.generated != nil {
			continue
		}
		object := *p.Object
		// Pods of a StatefulSet have the same name one after the other.
		if object.UID == "" || uids[object.UID] {
			object.UID = types.UID(fmt.Sprintf("%s#%d", resources.Name(&object), i))
		}
		uids[object.UID] = true
		object.Spec = *object.Spec.DeepCopy()
		object.Spec.NodeName = ""
		manifest.SetPodDefaults(&object)
		if references.RemoveMissing(&object) {
			in.unclaimed++
		}
		in.pods[len(in.pods)-1].Object = &object
	}
}

// since returns a time of the recording relative to the start of the part, Never if it is not before its end.
func (in *Part) since(at int64) int64 {
	if at == Never || at-in.from >= in.seconds {
		return Never
	}
	return at - in.from
}

// addNodes adds the nodes that exist within the part.
func (in *Part) addNodes(r *Recording) {
	first := map[string]int64{} // when the first pod was scheduled on the node
	chosen := map[string]bool{} // the scheduler selected the node within the part
	for i := range in.pods {
		p := &in.pods[i]
		if p.Node == "" {
			continue
		}
		if second, ok := first[p.Node]; !ok || p.Scheduled < second {
			first[p.Node] = p.Scheduled
		}
		if p.Scheduled >= 0 && !isBound(p.Object) {
			chosen[p.Node] = true
		}
	}
	names := map[string]bool{}
	for _, n := range r.Nodes {
		n.Appeared, n.Gone = n.Appeared-in.from, in.since(n.Gone)
		if n.Gone <= 0 || n.Appeared >= in.seconds {
			continue
		}
		// A scrape sees a node later than the scheduler does.
		if second, ok := first[n.Object.Name]; ok && !names[n.Object.Name] {
			n.Appeared = min(n.Appeared, second)
		}
		names[n.Object.Name] = true
		n.Object, n.Appeared = in.openNode(n.Object, chosen[n.Object.Name]), max(n.Appeared, 0)
		in.nodes = append(in.nodes, n)
	}
	slices.SortStableFunc(in.nodes, func(a, b Node) int { return cmp.Compare(a.Appeared, b.Appeared) })
}

// openNode returns a node with the defaults of the API server. A node that the scheduler selected is made
// schedulable, even if it is cordoned or not ready in its last recorded state.
func (in *Part) openNode(object *v1.Node, chosen bool) *v1.Node {
	object = object.DeepCopy()
	manifest.SetNodeDefaults(object)
	if !chosen {
		return object
	}
	taints := slices.DeleteFunc(slices.Clone(object.Spec.Taints), func(t v1.Taint) bool {
		return strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Effect != v1.TaintEffectPreferNoSchedule
	})
	if object.Spec.Unschedulable || len(taints) < len(object.Spec.Taints) {
		in.cordoned++
		object.Spec.Unschedulable, object.Spec.Taints = false, taints
	}
	return object
}

// Time returns the instant of a second of the part.
func (in *Part) Time(second int64) time.Time {
	return in.about.From.Add(time.Duration(in.from+second) * time.Second)
}

// Describe returns the times of the part, and what the recording lacks.
func (in *Part) Describe() *result.Part {
	out := &result.Part{From: in.Time(0), To: in.Time(in.seconds), Missing: []string{}}
	for _, kill := range in.about.Kills {
		if !kill.Time.Before(in.Time(0)) && kill.Time.Before(in.Time(in.seconds)) {
			out.MemoryKills++
		}
	}
	for _, missing := range in.about.Missing {
		out.Missing = append(out.Missing, missing.What+": "+missing.Why)
	}
	return out
}

// Seconds returns the length of the part.
func (in *Part) Seconds() int64 { return in.seconds }

// Input returns the nodes and pods to simulate. It reads Measured, Reschedule and Pack of the source.
func (in *Part) Input(s Source) Input {
	out := Input{
		Nodes: slices.Clone(in.nodes), References: in.objects.Referred(), Workloads: in.objects.Workloads, End: in.seconds,
		Start: in.Time(0), Warnings: in.objects.Warnings, Missing: in.objects.Missing, Kubernetes: in.objects.Kubernetes,
		Assumptions: slices.Clone(in.generated),
	}
	if in.isRecorded() {
		out.Part = in
	}
	c := partConverter{Part: in, source: s, nodes: map[string][]Node{}, groups: groups{}}
	for _, n := range in.nodes {
		c.nodes[n.Object.Name] = append(c.nodes[n.Object.Name], n)
	}
	var objects []*v1.Pod
	for i := range in.pods {
		if p, ok := c.pod(&in.pods[i]); ok {
			out.Pods = append(out.Pods, p)
			objects = append(objects, p.Object)
		}
	}
	out.References = releaseClaims(manifest.GenerateClaims(objects, out.References), out.Pods)
	switch {
	case in.isInstant:
		c.assumeInstant(&out)
	case in.generated == nil:
		c.assume(&out)
		fallthrough
	default:
		setShapes(out.Pods)
	}
	return out
}

// isRecorded reports whether the part is of a recording over a time, in which pods have a history.
func (in *Part) isRecorded() bool { return in.generated == nil && !in.isInstant }

// partConverter converts pods of a part, and counts the pods of each assumption.
type partConverter struct {
	*Part
	source Source
	nodes  map[string][]Node
	groups groups

	running, rescheduled, neverScheduled, withoutNode, generated int
	gaps, samples                                                int
}

// pod converts a pod. It returns false if its node is not in the recording.
func (c *partConverter) pod(p *Pod) (InputPod, bool) {
	ended, ok := c.end(p)
	if !ok {
		c.withoutNode++
		return InputPod{}, false
	}
	out := fromPod(p.Object)
	out.Group = c.groups.numberOf(p.Object)
	out.Object.CreationTimestamp = metav1.NewTime(Time(p.Created))
	if p.BaseCPU+p.BaseMemory > 0 {
		out.BaseCPU, out.BaseMemory = p.BaseCPU, p.BaseMemory
	}
	out.Recorded = &Recorded{Node: p.Node}
	bound := isBound(p.Object)
	switch {
	case p.Scheduled < 0 && (bound || !c.source.Reschedule):
		c.running++
		setRunning(out.Object, c.nodeAtStart(p, bound), Time(p.Scheduled))
	case p.Scheduled < 0, c.isInstant && c.source.Reschedule:
		out.Arrival = c.source.arrival(c.rescheduled)
		c.rescheduled++
	case c.source.Measured || bound && p.Scheduled != Never:
		out.Recorded.Fixed = true
		if p.Scheduled != Never {
			out.Arrival, out.Recorded.Waited = p.Scheduled, p.Scheduled-p.Created
			break
		}
		fallthrough
	default:
		out.Arrival, out.Recorded.Waited = max(p.Created, 0), max(-p.Created, 0)
	}
	c.setEnd(&out, p, ended)
	if c.setUsage(&out, p); !c.isRecorded() {
		out.Recorded = nil
	}
	return out, true
}

// setEnd sets when a pod ends, or is deleted without having been scheduled.
func (c *partConverter) setEnd(out *InputPod, p *Pod, ended int64) {
	switch {
	case p.Scheduled == Never:
		c.neverScheduled++
		if ended != Never {
			out.Recorded.Deleted = max(ended, out.Arrival+1)
		}
	case ended == Never:
	case p.Scheduled < 0:
		out.Duration = max(ended-out.Arrival, 0)
	default:
		out.Duration = ended - p.Scheduled
	}
}

// nodeAtStart returns the node of a pod that runs at the start, which must exist.
func (c *partConverter) nodeAtStart(p *Pod, bound bool) string {
	node := c.source.Placed[resources.Name(p.Object)]
	if bound || c.source.Measured || !slices.ContainsFunc(c.nodes[node], func(n Node) bool { return n.Appeared <= 0 }) {
		return p.Node
	}
	return node
}

// setRunning makes a pod run on a node since a time.
func setRunning(pod *v1.Pod, node string, since time.Time) {
	pod.Spec.NodeName = node
	pod.Status.Conditions = []v1.PodCondition{{
		Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(since),
	}}
}

// end returns when a pod ended, at the latest when its node was gone. It returns false if the pod was scheduled on a
// node that is not in the recording at that time.
func (c *partConverter) end(p *Pod) (int64, bool) {
	if p.Scheduled == Never || !c.isRecorded() {
		return p.Ended, true
	}
	for _, n := range c.nodes[p.Node] {
		if n.Appeared <= max(p.Scheduled, 0) && p.Scheduled < n.Gone {
			return min(p.Ended, n.Gone), true
		}
	}
	return 0, false
}

// setUsage sets the recorded usage of a pod, if there is any.
func (c *partConverter) setUsage(out *InputPod, p *Pod) {
	if p.CPU.Len() == 0 || p.Memory.Len() == 0 {
		c.generated++
		return
	}
	c.samples += p.CPU.Len() + p.Memory.Len()
	start := max(p.Scheduled, 0)
	if p.Scheduled < 0 && out.Object.Spec.NodeName == "" {
		start = out.Arrival // rescheduled: the time of day remains
	}
	if p.Scheduled == Never {
		start = max(p.Created, 0)
	}
	cpu, cpuGaps := p.CPU.withoutGaps()
	memory, memoryGaps := p.Memory.withoutGaps()
	c.gaps += cpuGaps + memoryGaps
	out.Usage = recordedUsage{start: c.from + start, step: int64(c.about.Step), cpu: cpu, memory: memory}
}

// recordedUsage is the usage of a pod in a recording.
type recordedUsage struct {
	// start is the second of the recording at which the pod was placed.
	start, step int64
	cpu, memory Series
}

// At implements Usage. Before the first sample it returns the first sample, and after the last sample the last sample.
func (u recordedUsage) At(age, _ int64) (cpu, memory float64) {
	step := int(max(u.start+age, 0) / u.step)
	return u.cpu.nearest(step), u.memory.nearest(step)
}

// OfCopy implements Usage.
func (u recordedUsage) OfCopy(int) Usage { return u }

// assume adds the assumptions about a recording.
func (c *partConverter) assume(in *Input) {
	in.assume("recorded from %s to %s: pods arrive when they were created, and run for as long as they ran once they have a node",
		c.Time(0).Format(time.RFC3339), c.Time(c.seconds).Format(time.RFC3339))
	in.assumeIf(c.running > 0, "%s had a node at the start and %s it",
		format.Of(c.running, "pod"), format.Form(c.running, "keeps", "keep"))
	in.assumeIf(c.rescheduled > 0, "%s had a node at the start and %s again, in the order of creation, %s",
		format.Of(c.rescheduled, "pod"), format.Form(c.rescheduled, "arrives", "arrive"), c.source.rate())
	in.assumeIf(c.neverScheduled > 0, "%s never had a node in the recording: pending until deleted, unless there is a node that fits",
		format.Of(c.neverScheduled, "pod"))
	c.assumeNodes(in)
	in.assume("a pod uses what it used the same time after it was scheduled")
	c.demand.note(in, float64(c.about.Step)/60)
	in.assumeIf(c.gaps > 0, "%s missing: the value before each gap is repeated", format.PartAre(c.gaps, c.samples, "usage sample"))
	in.assumeIf(c.generated > 0, "the usage of %s is not recorded, and generated", format.Part(c.generated, len(in.Pods), "pod"))
	in.assumeIf(c.withoutNode > 0, "%s left out: the node is not in the recording at the time at which the pod was scheduled",
		format.Are(c.withoutNode, "pod"))
	in.assumeIf(c.unclaimed > 0, "%s scheduled without volumes or devices whose claims are not in the recording",
		format.Are(c.unclaimed, "pod"))
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
	in.assumeIf(appear+gone > 0, "%s %s and %s removed as recorded; pods that are on a removed node are scheduled again",
		format.Of(appear, "node"), format.Form(appear, "appears", "appear"), format.Are(gone, "node"))
	in.assume("labels, taints and amounts of nodes are those last recorded")
	in.assumeIf(c.cordoned > 0,
		"%s cordoned or not ready in the last recorded state, but not when pods were scheduled there: counted as schedulable",
		format.Are(c.cordoned, "node"))
}

// assumeNotSimulated adds actions of kube-scheduler for these pods that a run does not simulate:
// preemption, the order of priorities, scheduling in groups, and claims for extended resources.
func (in *Input) assumeNotSimulated() {
	priorities, groups, gated, arriving := map[int32]bool{}, 0, 0, 0
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
		if len(spec.SchedulingGates) > 0 {
			gated++
		}
	}
	in.assumeIf(len(priorities) > 1 && arriving > 0, "pods have %d different priorities; preemption is not simulated, and pending "+
		"pods are attempted in the order of their arrival", len(priorities))
	in.assumeIf(groups > 0, "%s of pod groups (spec.schedulingGroup) %s scheduled one by one",
		format.Of(groups, "pod"), format.Form(groups, "is", "are"))
	in.assumeIf(gated > 0, "%s with scheduling gates %s scheduled as if the gates were removed",
		format.Of(gated, "pod"), format.Form(gated, "is", "are"))
	in.assumeIf(mapsExtendedResources(in.References),
		"devices are allocated for resource claims, but not for extended resources that a device class provides")
}
