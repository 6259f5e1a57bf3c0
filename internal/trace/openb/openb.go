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

	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/table"
)

const mebibyte = 1 << 20

// Columns of the file of nodes.
const (
	nodeName = iota
	nodeCPU
	nodeMemory
	nodeGPU
	nodeModel
)

var nodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}

// Columns of the file of pods.
const (
	podName = iota
	podCPU
	podMemory
	podGPUs
	podGPUMilli
	podGPUSpec
	podQoS
	podPhase
	podCreation
	podDeletion
	podScheduled
)

var podColumns = []string{
	"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
	"creation_time", "deletion_time", "scheduled_time",
}

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
	r, names := table.NewWithHeader(file, source, nodeColumns), table.Unique{}
	for r.Next() {
		if len(nodes) == trace.MaxNodes {
			return nil, table.TooMany(r, "nodes", trace.MaxNodes)
		}
		nodes = append(nodes, trace.Node{
			Name: names.Name(r, nodeName),
			Capacity: trace.Amounts{
				CPU:    r.Int(nodeCPU, 1, trace.MaxCPU),
				Memory: r.Int(nodeMemory, 1, trace.MaxMemory/mebibyte) * mebibyte,
				GPU:    r.Int(nodeGPU, 0, trace.MaxGPU/1000) * 1000,
			},
			GPUModel: model(r, nodeModel),
		})
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, &table.Error{File: file, Found: "no nodes", Allowed: "at least one"}
	}
	return nodes, nil
}

// ReadPods reads the file of pods and keeps its order.
func ReadPods(file string, source io.Reader) ([]trace.Pod, error) {
	var pods []trace.Pod
	r, names := table.NewWithHeader(file, source, podColumns), table.Unique{}
	for r.Next() {
		if len(pods) == trace.MaxPods {
			return nil, table.TooMany(r, "pods", trace.MaxPods)
		}
		pods = append(pods, readPod(r, names))
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return pods, nil
}

func readPod(r *table.Reader, names table.Unique) trace.Pod {
	p := trace.Pod{
		Name: names.Name(r, podName),
		Request: trace.Amounts{
			CPU:    r.Int(podCPU, 0, trace.MaxCPU),
			Memory: r.Int(podMemory, 0, trace.MaxMemory/mebibyte) * mebibyte,
			// A pod with one device may request a part of it.
			GPU: r.Int(podGPUs, 0, trace.MaxGPU/1000) * r.Int(podGPUMilli, 0, 1000),
		},
		Arrival: r.Second(podCreation, 0, ""),
		End:     trace.Never,
	}
	class, ok := classes[r.Text(podQoS)]
	if !ok {
		r.Fail(podQoS, "BE, LS, BestEffort, Burstable, Guaranteed or empty")
	}
	p.Class = class
	if r.Text(podGPUSpec) != "" {
		for name := range strings.SplitSeq(r.Text(podGPUSpec), "|") {
			if !trace.ValidName(name) {
				r.Fail(podGPUSpec, "names of GPU models separated by |")
			}
			p.GPUModels = append(p.GPUModels, strings.Clone(name))
		}
	}
	p.Start = p.Arrival
	if r.Text(podScheduled) != "" {
		p.Start = r.Second(podScheduled, p.Arrival, "the creation_time, or empty")
	}
	if r.Text(podDeletion) != "" {
		p.End = r.Second(podDeletion, p.Start, "the creation_time and the scheduled_time, or empty")
	}
	switch r.Text(podPhase) {
	case "Pending", "Running", "Succeeded", "Failed", "Unknown", "":
	default:
		r.Fail(podPhase, "Pending, Running, Succeeded, Failed, Unknown or empty")
	}
	return p
}

// model returns a column that must be empty or the name of a GPU model.
func model(r *table.Reader, column int) string {
	if r.Text(column) == "" {
		return ""
	}
	return r.Name(column)
}
