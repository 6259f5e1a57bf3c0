package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// recordingStep is the step of recordings of generated clusters in seconds.
const recordingStep = 60

// RecordSimulated writes a recording with generated usage to a file: of a generated cluster, or of two days of the cluster of a snapshot. A
// text describes its usage as for --usage, which errors name. The recording of a generated cluster begins on a Monday.
func RecordSimulated(file string, source Source, use string, seed uint64) error {
	spec, err := ParseUsage(use)
	if err != nil {
		return fmt.Errorf("--usage: %w", err)
	}
	model, err := NewUsage(spec, seed)
	if err != nil {
		return fmt.Errorf("--usage: %w", err)
	}
	var r *Recording
	if source.Generate != "" {
		in, err := source.Input(seed, DefaultLimits)
		if err != nil {
			return err
		}
		r = recordingOf(&in, model, time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC))
	} else {
		snapshot, err := openFlag(source.Recording)
		if err != nil {
			return err
		}
		if r, err = snapshot.overDays(&spec, model); err != nil {
			return fmt.Errorf("--recording: %s: %w", source.Recording, err)
		}
	}
	return r.WriteFile(file)
}

const (
	// snapshotDays is how long a snapshot is continued: the first two thirds have more than a day.
	snapshotDays = 2
	// snapshotStep is a step in seconds with which days of a large cluster fit in memory.
	snapshotStep = 300
)

// overDays returns a recording of some days in which the nodes and pods of a snapshot remain. The usage of a pod changes as a model does,
// around the usage of the snapshot or, if that is unknown, around what the shape says.
func (r *Recording) overDays(spec *UsageSpec, model *UsageModel) (*Recording, error) {
	if r.Usage == nil || len(r.Usage.Pods) == 0 {
		return nil, errors.New(
			"the snapshot has no usage of pods: plimsoll snapshot reads it from metrics-server or, with --provider Prometheus, Prometheus",
		)
	}
	cluster, err := r.Cluster()
	if err != nil {
		return nil, err
	}
	out := &Recording{About: r.About}
	out.About.To, out.About.Step = r.About.From.Add(snapshotDays*24*time.Hour), snapshotStep
	for _, node := range cluster.Nodes {
		out.Nodes = append(out.Nodes, Node{Object: node, Gone: Never})
	}
	for _, object := range r.Objects {
		if object.Kind != nil && object.Kind.Resource != "nodes" && object.Kind.Resource != "pods" {
			out.Objects = append(out.Objects, object)
		}
	}
	measured := make(map[string]load.PodUsage, len(r.Usage.Pods))
	for _, used := range r.Usage.Pods {
		measured[used.Namespace+"/"+used.Name] = used
	}
	numbers := groups{}
	for i, pod := range slices.Concat(cluster.Running, cluster.Pending) {
		recorded := Pod{Object: Unbind(pod), Node: pod.Spec.NodeName, Ended: Never}
		if recorded.Node == "" {
			recorded.Scheduled, recorded.Started = Never, Never
			out.Pods = append(out.Pods, recorded)
			continue
		}
		requests := PodAmounts(pod)
		cpu, memory := float64(cmp.Or(requests.CPU, defaultCPURequest)), float64(cmp.Or(requests.Memory, defaultMemoryRequest))
		if used, ok := measured[resources.Name(pod)]; ok && used.Valid() {
			cpu, memory = used.CPU/spec[usageCPU].Mean, used.Memory/spec[usageMemory].Mean
		}
		demand := demandOf(pod)
		mostCPU, mostMemory := cmp.Or(demand.CPULimit, math.MaxFloat64), cmp.Or(demand.MemoryLimit, math.MaxFloat64)
		cursor := model.Cursor(uint64(i), numbers.numberOf(pod))
		for step := range out.About.Steps() {
			c, m := model.Next(&cursor, int64(step)*snapshotStep/recordingStep)
			recorded.CPU.Set(step, min(c*cpu, mostCPU))
			recorded.Memory.Set(step, min(m*memory, mostMemory))
		}
		out.Pods = append(out.Pods, recorded)
	}
	slices.SortStableFunc(out.Pods, func(a, b Pod) int { return cmp.Compare(resources.Name(a.Object), resources.Name(b.Object)) })
	return out, nil
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
