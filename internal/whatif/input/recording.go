package input

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
)

// Recording is a recording, or a part of it, as the input of runs. It is immutable.
type Recording struct {
	about recording.About
	// from and seconds are the part: its start in seconds since About.From, and its length.
	from, seconds int64
	nodes         []recordedNode
	pods          []recordedPod
	objects       *manifest.Objects
	// cordoned is the number of nodes whose last recorded state is that of a node that is about to go.
	cordoned int
	// unclaimed is the number of pods with volumes or devices whose claims the recording lacks.
	unclaimed int
}

// recordedNode is a node of a recording, with times in seconds since the start of the part.
type recordedNode struct {
	object         *v1.Node
	appeared, gone int64
}

// recordedPod is a pod of a recording, with times in seconds since the start of the part.
type recordedPod struct {
	*recording.Pod
	object                    *v1.Pod
	created, scheduled, ended int64
}

// NewRecording prepares the part of a recording from one time to another, in seconds since its start; to is 0 for
// its end. The part has a whole number of steps of the simulation. It returns an error if the part is too short or
// an object is invalid.
func NewRecording(r *recording.Recording, from, to int64) (*Recording, error) {
	const step = 60
	if to == 0 {
		to = r.About.Seconds()
	}
	in := &Recording{about: r.About, from: from, seconds: (to - from) / step * step}
	if in.seconds < step {
		return nil, fmt.Errorf("found %d s from second %d to %d: must be at least %d s", max(to-from, 0), from, to, step)
	}
	var err error
	if in.objects, err = manifest.ReadReferred(documents(r.Objects)); err != nil {
		return nil, err
	}
	in.addPods(r)
	in.addNodes(r)
	return in, nil
}

// documents returns a source of JSON objects.
func documents(objects []json.RawMessage) manifest.Source {
	return func(each func(where string, document []byte) error) error {
		for i, object := range objects {
			where := fmt.Sprintf("object %d", i+1)
			if err := each(where, object); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
		}
		return nil
	}
}

// addPods adds the pods that exist within the part.
func (in *Recording) addPods(r *recording.Recording) {
	claims := claimNames(in.objects)
	uids := map[types.UID]bool{}
	for i := range r.Pods {
		p := recordedPod{Pod: &r.Pods[i]}
		p.created, p.scheduled, p.ended = p.Created-in.from, since(p.Scheduled, in.from), since(p.Ended, in.from)
		if p.ended <= 0 || p.created >= in.seconds {
			continue
		}
		if p.ended >= in.seconds {
			p.ended = recording.Never
		}
		if p.scheduled >= in.seconds {
			p.scheduled = recording.Never
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
		if claims.removeMissing(&object) {
			in.unclaimed++
		}
		p.object = &object
		in.pods = append(in.pods, p)
	}
}

// since returns a time relative to the start of a part, Never for Never.
func since(at, from int64) int64 {
	if at == recording.Never {
		return at
	}
	return at - from
}

// addNodes adds the nodes that exist within the part.
func (in *Recording) addNodes(r *recording.Recording) {
	first := map[string]int64{} // when the first pod was scheduled on the node
	chosen := map[string]bool{} // the scheduler selected the node within the part
	for i := range in.pods {
		p := &in.pods[i]
		if p.Node == "" || p.scheduled == recording.Never {
			continue
		}
		if second, ok := first[p.Node]; !ok || p.scheduled < second {
			first[p.Node] = p.scheduled
		}
		if p.scheduled >= 0 && !resources.IsNodeBound(p.object) {
			chosen[p.Node] = true
		}
	}
	names := map[string]bool{}
	for i := range r.Nodes {
		n := recordedNode{
			object: r.Nodes[i].Object, appeared: r.Nodes[i].Appeared - in.from, gone: since(r.Nodes[i].Gone, in.from),
		}
		if n.gone <= 0 || n.appeared >= in.seconds {
			continue
		}
		if n.gone >= in.seconds {
			n.gone = recording.Never
		}
		// A scrape sees a node later than the scheduler does.
		if second, ok := first[n.object.Name]; ok && !names[n.object.Name] {
			n.appeared = min(n.appeared, second)
		}
		names[n.object.Name] = true
		n.object = in.openNode(n.object, chosen[n.object.Name])
		in.nodes = append(in.nodes, n)
	}
	slices.SortStableFunc(in.nodes, func(a, b recordedNode) int { return cmp.Compare(max(a.appeared, 0), max(b.appeared, 0)) })
}

// openNode returns a node with the defaults of the API server. A node that the scheduler selected was not cordoned
// then, whatever its last recorded state is.
func (in *Recording) openNode(object *v1.Node, chosen bool) *v1.Node {
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
func (in *Recording) Time(second int64) time.Time {
	return in.about.From.Add(time.Duration(in.from+second) * time.Second)
}

// Warnings returns warnings about objects of the recording that are ignored.
func (in *Recording) Warnings() []string { return in.objects.Warnings }

// Seconds returns the length of the part.
func (in *Recording) Seconds() int64 { return in.seconds }

// RecordingOptions select how a recording is replayed.
type RecordingOptions struct {
	// Measured places all pods on the nodes on which they were recorded, at the time at which they were scheduled.
	Measured bool
	// Reschedule makes the pods that have a node at the start arrive as well, Pack of them each second, or all at the
	// start if it is 0.
	Reschedule bool
	Pack       int
}

// Input returns the nodes and pods to simulate.
func (in *Recording) Input(o RecordingOptions) Cluster {
	cluster := Cluster{References: in.objects.Referred(), Workloads: in.objects.Workloads, End: in.seconds}
	gone := map[string][]recordedNode{}
	for _, n := range in.nodes {
		node := Node{Object: n.object, Boot: max(n.appeared, 0)}
		if n.gone != recording.Never {
			node.Gone = n.gone
		}
		cluster.Nodes = append(cluster.Nodes, node)
		gone[n.object.Name] = append(gone[n.object.Name], n)
	}
	c := recordingConverter{Recording: in, options: o, nodes: gone, groups: map[resources.Workload]uint64{}}
	var objects []*v1.Pod
	for i := range in.pods {
		if p, ok := c.pod(&in.pods[i]); ok {
			cluster.Pods = append(cluster.Pods, p)
			objects = append(objects, p.Object)
		}
	}
	cluster.References = releaseClaims(manifest.GenerateClaims(objects, cluster.References), cluster.Pods)
	setShapes(cluster.Pods)
	cluster.Assumptions = c.assumptions(&cluster)
	return cluster
}

// recordingConverter converts pods of a recording, and counts what has to be assumed.
type recordingConverter struct {
	*Recording
	options RecordingOptions
	nodes   map[string][]recordedNode
	groups  map[resources.Workload]uint64

	running, rescheduled, neverScheduled, withoutNode, generated int
	gaps, samples                                                int
	noRequests                                                   bool
}

// pod converts a pod. It returns false if its node is not in the recording.
func (c *recordingConverter) pod(p *recordedPod) (Pod, bool) {
	ended, ok := c.end(p)
	if !ok {
		c.withoutNode++
		return Pod{}, false
	}
	out := fromPod(p.object)
	setGPU(&out)
	out.Group = c.group(p.object)
	out.Object.CreationTimestamp = metav1.NewTime(Time(p.created))
	out.Recorded = &Recorded{Node: p.Node}
	bound := resources.IsNodeBound(p.object)
	switch {
	case p.scheduled < 0 && (bound || !c.options.Reschedule):
		c.running++
		c.setRunning(&out, p)
	case p.scheduled < 0:
		out.Arrival = c.nextRescheduled()
	case c.options.Measured || bound && p.scheduled != recording.Never:
		out.Recorded.Fixed = true
		if p.scheduled != recording.Never {
			out.Arrival, out.Recorded.Waited = p.scheduled, p.scheduled-p.created
			break
		}
		fallthrough
	default:
		out.Arrival, out.Recorded.Waited = max(p.created, 0), max(-p.created, 0)
	}
	out.Duration = trace.Never
	switch {
	case p.scheduled == recording.Never:
		c.neverScheduled++
		if ended != recording.Never {
			out.Recorded.Deleted = max(ended, out.Arrival+1)
		}
	case ended == recording.Never:
	case p.scheduled < 0:
		out.Duration = max(ended-out.Arrival, 0)
	default:
		out.Duration = ended - p.scheduled
	}
	c.setUsage(&out, p)
	return out, true
}

// nextRescheduled returns the arrival of the next pod that had a node at the start.
func (c *recordingConverter) nextRescheduled() int64 {
	n := c.rescheduled
	c.rescheduled++
	if c.options.Pack <= 0 {
		return 0
	}
	return int64(n / c.options.Pack)
}

// group returns the number of the workload of a pod.
func (c *recordingConverter) group(pod *v1.Pod) uint64 {
	workload := resources.WorkloadOf(pod)
	if _, ok := c.groups[workload]; !ok {
		c.groups[workload] = uint64(len(c.groups))
	}
	return c.groups[workload]
}

// setRunning makes a pod run on its node from the start.
func (c *recordingConverter) setRunning(out *Pod, p *recordedPod) {
	out.Object.Spec.NodeName = p.Node
	out.Object.Status.Conditions = []v1.PodCondition{{
		Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(Time(p.scheduled)),
	}}
}

// end returns when a pod ended, at the latest when its node was gone. It returns false if the pod was scheduled on a
// node that is not in the recording at that time.
func (c *recordingConverter) end(p *recordedPod) (int64, bool) {
	if p.scheduled == recording.Never {
		return p.ended, true
	}
	for _, n := range c.nodes[p.Node] {
		if n.appeared <= max(p.scheduled, 0) && p.scheduled < n.gone {
			return min(p.ended, n.gone), true
		}
	}
	return 0, false
}

// setUsage sets the recorded usage of a pod, if there is any.
func (c *recordingConverter) setUsage(out *Pod, p *recordedPod) {
	if p.CPU.Len() == 0 || p.Memory.Len() == 0 {
		c.generated++
		c.noRequests = c.noRequests || out.Resources.CPURequest == 0 || out.Resources.MemoryRequest == 0
		return
	}
	for _, series := range []*recording.Series{&p.CPU, &p.Memory} {
		c.samples += series.Len()
		for step := series.First; step < series.End(); step++ {
			if _, ok := series.At(step); !ok {
				c.gaps++
			}
		}
	}
	start := max(p.scheduled, 0)
	if p.scheduled < 0 && out.Object.Spec.NodeName == "" {
		start = out.Arrival // rescheduled: the time of day remains
	}
	if p.scheduled == recording.Never {
		start = max(p.created, 0)
	}
	out.Usage = &recordedUsage{
		start: c.from + start, step: int64(c.about.Step), cpu: lastValue{Series: &p.CPU}, memory: lastValue{Series: &p.Memory},
	}
}
