package recording

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// recordingStep is the step of recordings of generated clusters in seconds.
const recordingStep = 60

// RecordingOf returns a recording of a generated input, from an instant on until the last pod arrives: pods run on the nodes in turn as
// soon as they arrive, and use what a model generates.
func RecordingOf(in *Input, model *UsageModel, start time.Time) *Recording {
	end := int64(0)
	for i := range in.Pods {
		end = max(end, in.Pods[i].Arrival)
	}
	end = (end/recordingStep + 1) * recordingStep
	r := &Recording{Nodes: in.Nodes, About: About{
		From: start, To: start.Add(time.Duration(end) * time.Second), Step: recordingStep, Sources: []string{in.Name},
	}}
	for _, object := range in.References { // the ReplicaSets by which pods are spread
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			continue // it cannot fail for objects that are generated
		}
		fields["apiVersion"], fields["kind"] = "apps/v1", "ReplicaSet"
		raw, _ := json.Marshal(fields)
		r.Objects = append(r.Objects, kinds.Object{Kind: kinds.Of("apps", "ReplicaSet"), JSON: raw})
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		recorded := Pod{
			Object: p.Object, Created: p.Arrival, Scheduled: p.Arrival, Started: p.Arrival, Ended: Never,
			Node: in.Nodes[i%len(in.Nodes)].Object.Name,
		}
		if p.Duration < end-p.Arrival {
			recorded.Ended = p.Arrival + p.Duration
		}
		cursor := model.Cursor(uint64(i), p.Group)
		for second := p.Arrival / recordingStep * recordingStep; second < min(recorded.Ended, end); second += recordingStep {
			cpu, memory := model.Next(&cursor, second/recordingStep)
			recorded.CPU.Set(int(second/recordingStep), cpu*p.BaseCPU)
			recorded.Memory.Set(int(second/recordingStep), memory*p.BaseMemory)
		}
		r.Pods = append(r.Pods, recorded)
	}
	return r
}
