// Package openb reads the openb trace in its published form: the nodes and pods of a production cluster
// with GPUs (Alibaba cluster-trace-gpu-v2023), in a file each with a header. The trace has requests and
// times but neither limits, usage nor workloads.
//
// Its classes BE and LS are not QoS classes of Kubernetes: pods of both have requests. Its 8,152 pods
// are spread over five months, so that few run at once; trace.Cluster.Pack fills the cluster with them.
package openb

import (
	"fmt"
	"io"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
)

const mebibyte = 1 << 20

var (
	nodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	podColumns  = []string{
		"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
		"creation_time", "deletion_time", "scheduled_time",
	}
)

// classes has the classes of the trace.
var classes = map[string]trace.Class{
	"":           trace.Unclassed,
	"BE":         trace.BestEffort,
	"BestEffort": trace.BestEffort,
	"Burstable":  trace.Burstable,
	"Guaranteed": trace.Guaranteed,
	"LS":         trace.LatencySensitive,
}

// Read reads the files of nodes and pods. Errors name the files.
func Read(nodeFile string, nodes io.Reader, podFile string, pods io.Reader) (*trace.Cluster, error) {
	c := &trace.Cluster{}
	var err error
	if c.Nodes, err = readNodes(nodeFile, nodes); err != nil {
		return nil, err
	}
	if c.Pods, err = ReadPods(podFile, pods); err != nil {
		return nil, err
	}
	c.Sort()
	c.Rebase()
	group(c)
	return c, nil
}

// groupGap is the longest time in seconds between the arrivals of two consecutive pods of a group.
const groupGap = 3600

// group assigns the sorted pods to groups, as the trace does not name workloads. Equal pods of which each
// arrives within groupGap of the one before are a group.
func group(c *trace.Cluster) {
	type recent struct {
		group   string
		arrival int64
	}
	last, groups := map[string]recent{}, 0
	for i := range c.Pods {
		p := &c.Pods[i]
		key := fmt.Sprint(p.Request, p.GPUModels, p.Class)
		previous, found := last[key]
		if !found || p.Arrival-previous.arrival > groupGap {
			previous.group = fmt.Sprintf("group-%05d", groups)
			groups++
		}
		p.Group, p.Batch = previous.group, p.Class == trace.BestEffort
		last[key] = recent{p.Group, p.Arrival}
	}
	c.Assumed = append(c.Assumed, fmt.Sprintf(
		"the trace names no workloads: equal pods of which each arrives within an hour of the one before are one (%d workloads), "+
			"and those of the class BE are batch jobs", groups))
}

// readNodes reads the file of nodes.
func readNodes(file string, source io.Reader) ([]trace.Node, error) {
	var nodes []trace.Node
	t := newTable(file, source, nodeColumns)
	for t.next() {
		if len(nodes) == trace.MaxNodes {
			return nil, fmt.Errorf("%s, line %d: found more than %d nodes: must have at most %[3]d", file, t.line, trace.MaxNodes)
		}
		n := trace.Node{
			Name: t.unique("sn"),
			Capacity: trace.Amounts{
				CPU:    t.integer("cpu_milli", 1, trace.MaxCPU),
				Memory: t.integer("memory_mib", 1, trace.MaxMemory/mebibyte) * mebibyte,
				GPU:    t.integer("gpu", 0, trace.MaxGPU/1000) * 1000,
			},
		}
		if t.text("model") != "" {
			n.GPUModel = t.name("model")
		}
		nodes = append(nodes, n)
	}
	if t.err == nil && len(nodes) == 0 {
		return nil, fmt.Errorf("%s: found no nodes: must have at least one", file)
	}
	return nodes, t.err
}

// ReadPods reads the file of pods and keeps its order.
func ReadPods(file string, source io.Reader) ([]trace.Pod, error) {
	var pods []trace.Pod
	t := newTable(file, source, podColumns)
	for t.next() {
		if len(pods) == trace.MaxPods {
			return nil, fmt.Errorf("%s, line %d: found more than %d pods: must have at most %[3]d", file, t.line, trace.MaxPods)
		}
		pods = append(pods, readPod(t))
	}
	return pods, t.err
}

func readPod(t *table) trace.Pod {
	p := trace.Pod{
		Name: t.unique("name"),
		Request: trace.Amounts{
			CPU:    t.integer("cpu_milli", 0, trace.MaxCPU),
			Memory: t.integer("memory_mib", 0, trace.MaxMemory/mebibyte) * mebibyte,
			// A pod with one device may request a part of it.
			GPU: t.integer("num_gpu", 0, trace.MaxGPU/1000) * t.integer("gpu_milli", 0, 1000),
		},
		Arrival: t.second("creation_time", 0, ""),
		End:     trace.Never,
	}
	class, ok := classes[t.text("qos")]
	if !ok {
		t.fail("qos", "BE, LS, BestEffort, Burstable, Guaranteed or empty")
	}
	p.Class = class
	if models := t.text("gpu_spec"); models != "" {
		for name := range strings.SplitSeq(models, "|") {
			if !trace.ValidName(name) {
				t.fail("gpu_spec", "names of GPU models separated by |")
			}
			p.GPUModels = append(p.GPUModels, name)
		}
	}
	p.Start = p.Arrival
	if t.text("scheduled_time") != "" {
		p.Start = t.second("scheduled_time", p.Arrival, "the creation_time, or empty")
	}
	if t.text("deletion_time") != "" {
		p.End = t.second("deletion_time", p.Start, "the creation_time and the scheduled_time, or empty")
	}
	switch t.text("pod_phase") {
	case "Pending", "Running", "Succeeded", "Failed", "Unknown", "":
	default:
		t.fail("pod_phase", "Pending, Running, Succeeded, Failed, Unknown or empty")
	}
	return p
}
