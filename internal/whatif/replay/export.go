package replay

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// exporter makes a recording of a run. A nil exporter does nothing.
//
// The usage in the recording is the demand of pods, so that a replay has the overload of the run.
type exporter struct {
	recording recording.Recording
	// nodes and pods map the numbers of nodes and pods of the run to their indexes in the recording.
	nodes, pods map[int32]int
	// replacements is the number of replacements of each evicted pod.
	replacements map[int32]int
}

// newExporter returns an exporter if the options request one.
func newExporter(o Options) *exporter {
	if o.Export == nil {
		return nil
	}
	return &exporter{nodes: map[int32]int{}, pods: map[int32]int{}, replacements: map[int32]int{}}
}

// addNode adds a node that is ready from a second on.
func (e *exporter) addNode(number int32, object *v1.Node, second int64) {
	if e == nil {
		return
	}
	e.nodes[number] = len(e.recording.Nodes)
	e.recording.Nodes = append(e.recording.Nodes, recording.Node{Object: object, Appeared: second, Gone: recording.Never})
}

// removeNode records that a node is gone.
func (e *exporter) removeNode(number int32, second int64) {
	if e != nil {
		e.recording.Nodes[e.nodes[number]].Gone = second
	}
}

// addPod adds a pod that is created at a second.
func (e *exporter) addPod(number int32, object *v1.Pod, created int64) {
	if e == nil {
		return
	}
	e.pods[number] = len(e.recording.Pods)
	e.recording.Pods = append(e.recording.Pods, recording.Pod{
		Object: object, Created: created, Scheduled: recording.Never, Started: recording.Never, Ended: recording.Never,
	})
}

// pod returns the entry of a pod in the recording.
func (e *exporter) pod(number int32) *recording.Pod { return &e.recording.Pods[e.pods[number]] }

// place records that a pod was placed on a node.
func (e *exporter) place(number int32, node string, second int64) {
	if e != nil {
		p := e.pod(number)
		p.Node, p.Scheduled, p.Started = node, second, second
	}
}

// end records that a pod ended.
func (e *exporter) end(number int32, second int64) {
	if e != nil {
		e.pod(number).Ended = second
	}
}

// evict records that a pod lost its node. As a controller would, it creates another pod in its place.
func (e *exporter) evict(number int32, object *v1.Pod, second int64) {
	if e == nil {
		return
	}
	e.end(number, second)
	e.replacements[number]++
	replacement := *object
	suffix := fmt.Sprintf("-r%d", e.replacements[number])
	replacement.Name += suffix
	replacement.UID += types.UID(suffix)
	e.addPod(number, &replacement, second)
}

// use records the demand of a pod at a step, and returns it as recorded: the run continues with the rounded values,
// so that a replay makes the same decisions.
func (e *exporter) use(number int32, second int64, cpu, memory float64) (recordedCPU, recordedMemory float64) {
	if e == nil || second < 0 {
		return cpu, memory
	}
	p, step := e.pod(number), int(second/Step)
	p.CPU.Set(step, cpu)
	p.Memory.Set(step, memory)
	cpu, _ = p.CPU.At(step)
	memory, _ = p.Memory.At(step)
	return cpu, memory
}

// finish passes the recording to the options.
func (e *exporter) finish(r *run) error {
	if e == nil {
		return nil
	}
	e.recording.About = recording.About{
		APIVersion: recording.APIVersion, Kind: recording.AboutKind, From: recording.Time(0), To: recording.Time(max(r.now, 0)), Step: Step,
		Sources: []string{"simulation"}, Missing: []recording.Missing{},
	}
	for _, object := range r.input.References {
		raw, err := encode(object)
		if err != nil {
			return err
		}
		e.recording.Objects = append(e.recording.Objects, raw)
	}
	return r.options.Export(&e.recording)
}

// encode returns an object as JSON, with its type.
func encode(object runtime.Object) (json.RawMessage, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	return json.Marshal(object)
}

// exportStart adds the nodes and pods that exist at the start.
func (r *run) exportStart() {
	if r.exporter == nil {
		return
	}
	for i := range r.nodes {
		if r.nodes[i].ready {
			// Nodes are ordered by when they appeared.
			r.exporter.addNode(int32(i), r.input.Nodes[i].Object, int64(i-len(r.nodes)))
		}
	}
	for i := range r.pods {
		if r.pods[i].node != noNode {
			r.exportRunning(int32(i))
		}
	}
}

// exportRunning adds a pod that runs since before the start.
func (r *run) exportRunning(number int32) {
	p := &r.input.Pods[number]
	since := min(recording.Second(p.Object.CreationTimestamp.Time), -1)
	r.exporter.addPod(number, p.Object, since)
	r.exporter.place(number, r.nodes[r.pods[number].node].name, since)
}

// exportArrival adds a pod that arrives.
func (r *run) exportArrival(number int32) {
	if r.exporter == nil {
		return
	}
	p := &r.input.Pods[number]
	created := p.Arrival
	if p.Recorded != nil {
		created -= p.Recorded.Waited
	}
	r.exporter.addPod(number, p.Object, created)
}
