package generate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Record writes a recording with generated usage to a file: of a generated cluster, or of two days of the cluster of a snapshot. Usage of
// the source describes it. The recording of a generated cluster begins on a Monday.
func Record(file string, source Source, seed uint64) error {
	spec, err := source.UsageSpec()
	if err != nil {
		return err
	}
	var r *recording.Recording
	if source.Generate != "" {
		source.Tail = recording.Step // for the pods that arrive last
		if r, err = source.cluster(seed); err == nil {
			err = storeUsage(r, spec, seed)
		}
		if err != nil {
			return err
		}
		r.About.Sources, r.About.HasAutoscalers = []string{"generated: " + source.Generate}, true // there are none
	} else {
		snapshot, err := recording.OpenFlag(source.Recording)
		if err != nil {
			return err
		}
		if r, err = overDays(snapshot, spec, seed); err != nil {
			return fmt.Errorf("--recording: %s: %w", source.Recording, err)
		}
	}
	return r.WriteFile(file)
}

// storeUsage stores generated usage in a generated cluster, whose pods run on the nodes in turn. The recording ends when the last pod has
// arrived.
func storeUsage(r *recording.Recording, spec UsageSpec, seed uint64) error {
	part, err := r.Part(0, 0)
	if err != nil {
		return err
	}
	in := part.Input(recording.Source{})
	if err := AddUsage(&in, spec, seed); err != nil {
		return fmt.Errorf("--usage: %w", err)
	}
	end := int64(0)
	for i := range r.Pods {
		end = max(end, r.Pods[i].Created)
	}
	end = (end/recording.Step + 1) * recording.Step
	r.About.From = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	r.About.To = r.About.From.Add(time.Duration(end) * time.Second)
	for i := range r.Pods {
		p := &r.Pods[i]
		if p.Node = r.Nodes[i%len(r.Nodes)].Object.Name; p.Ended >= end {
			p.Ended = recording.Never
		}
		for second := p.Created / recording.Step * recording.Step; second < min(p.Ended, end); second += recording.Step {
			cpu, memory := in.Pods[i].Usage.At(0, second)
			p.CPU.Set(int(second/recording.Step), cpu)
			p.Memory.Set(int(second/recording.Step), memory)
		}
	}
	return nil
}

const (
	// snapshotDays is how long a snapshot is continued: the first two thirds have more than a day.
	snapshotDays = 2
	// snapshotStep is a step in seconds with which days of a large cluster fit in memory.
	snapshotStep = 300
)

// addUsageAround adds usage to pods as the specification says, around what was measured.
func addUsageAround(in *recording.Input, measured map[string]load.PodUsage, spec UsageSpec, seed uint64) error {
	for i := range in.Pods {
		p := &in.Pods[i]
		if used, ok := measured[resources.Name(p.Object)]; ok && used.Valid() {
			p.BaseCPU, p.BaseMemory = used.CPU/spec[usageCPU].Mean, used.Memory/spec[usageMemory].Mean
		}
	}
	return AddUsage(in, spec, seed)
}

// overDays returns a recording of some days in which the nodes and pods of a snapshot remain. The usage of a pod changes as the
// specification says, around the usage of the snapshot or, if that is unknown, around its mean.
func overDays(r *recording.Recording, spec UsageSpec, seed uint64) (*recording.Recording, error) {
	if r.Usage == nil || len(r.Usage.Pods) == 0 {
		return nil, errors.New(
			"the snapshot has no usage of pods: plimsoll snapshot reads it from metrics-server or, with --provider Prometheus, Prometheus",
		)
	}
	cluster, err := r.Cluster()
	if err != nil {
		return nil, err
	}
	measured := make(map[string]load.PodUsage, len(r.Usage.Pods))
	for _, used := range r.Usage.Pods {
		measured[used.Namespace+"/"+used.Name] = used
	}
	in := recording.Source{}.FromManifests(cluster)
	if err := addUsageAround(&in, measured, spec, seed); err != nil {
		return nil, err
	}
	out := &recording.Recording{About: r.About, Nodes: in.Nodes}
	out.About.To, out.About.Step = r.About.From.Add(snapshotDays*24*time.Hour), snapshotStep
	for _, object := range r.Objects {
		if object.Kind != nil && object.Kind.Resource != "nodes" && object.Kind.Resource != "pods" {
			out.Objects = append(out.Objects, object)
		}
	}
	for i, pod := range slices.Concat(cluster.Running, cluster.Pending) {
		recorded, p := recording.Pod{Object: recording.Unbind(pod), Node: pod.Spec.NodeName, Ended: recording.Never}, &in.Pods[i]
		if recorded.Node == "" {
			recorded.Scheduled, recorded.Started = recording.Never, recording.Never
			out.Pods = append(out.Pods, recorded)
			continue
		}
		for step := range out.About.Steps() { // without a limit, the limit is 0
			cpu, memory := p.Usage.At(0, int64(step)*snapshotStep)
			recorded.CPU.Set(step, min(cpu, cmp.Or(p.Resources.CPULimit, cpu)))
			recorded.Memory.Set(step, min(memory, cmp.Or(p.Resources.MemoryLimit, memory)))
		}
		out.Pods = append(out.Pods, recorded)
	}
	slices.SortStableFunc(out.Pods, func(a, b recording.Pod) int {
		return strings.Compare(resources.Name(a.Object), resources.Name(b.Object))
	})
	return out, nil
}
