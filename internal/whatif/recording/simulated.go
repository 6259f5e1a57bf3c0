package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// recordingStep is the step of recordings of generated clusters in seconds.
const recordingStep = 60

// RecordGenerated writes the recording of a generated cluster with generated usage to a file. A text describes each, as for --generate and
// --usage, which errors name. The recording begins on a Monday.
func RecordGenerated(file, generate, use string, seed uint64) error {
	spec, err := ParseUsage(use)
	if err != nil {
		return fmt.Errorf("--usage: %w", err)
	}
	model, err := NewUsage(spec, seed)
	if err != nil {
		return fmt.Errorf("--usage: %w", err)
	}
	in, err := Source{Generate: generate}.Input(seed, DefaultLimits)
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	monday := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	return errors.Join(recordingOf(&in, model, monday).Write(out), out.Close())
}

// recordingOf returns a recording of a generated input, from an instant on until the last pod arrives: pods run on the nodes in turn as
// soon as they arrive, and use what a model generates.
func recordingOf(in *Input, model *UsageModel, start time.Time) *Recording {
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
