// Package openb reads the openb trace: nodes and pods of a production cluster
// with GPUs (Alibaba cluster-trace-gpu-v2023), as published, one file for each
// and with headers. It has requests and times, no limits and no use.
//
// Its classes BE and LS are of a scheduler other than Kubernetes': pods of both
// have requests. Its times spread 8,152 pods over five months, so that few are
// there at once; trace.Cluster.Pack makes them fill the cluster.
package openb

import (
	"fmt"
	"io"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/table"
)

const mebibyte = 1 << 20

// Columns of nodes.
const (
	nodeName = iota
	nodeCPU
	nodeMemory
	nodeGPU
	nodeModel
)

var nodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}

// Columns of pods.
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

// classes of the trace.
var classes = map[string]trace.Class{
	"":           trace.Unclassed,
	"BE":         trace.BestEffort,
	"BestEffort": trace.BestEffort,
	"Burstable":  trace.Burstable,
	"Guaranteed": trace.Guaranteed,
	"LS":         trace.LatencySensitive,
}

// Read reads both files. The names are for errors.
func Read(nodeFile string, nodes io.Reader, podFile string, pods io.Reader) (*trace.Cluster, error) {
	c := &trace.Cluster{}
	var err error
	if c.Nodes, err = ReadNodes(nodeFile, nodes); err != nil {
		return nil, err
	}
	if c.Pods, err = ReadPods(podFile, pods); err != nil {
		return nil, err
	}
	c.Sort()
	c.Rebase()
	return c, nil
}

// ReadNodes reads the list of nodes.
func ReadNodes(file string, source io.Reader) ([]trace.Node, error) {
	var nodes []trace.Node
	r, names := table.NewWithHeader(file, source, nodeColumns), table.Unique{}
	for r.Next() {
		if len(nodes) == trace.MaxNodes {
			return nil, &table.Error{File: file, Line: r.Line(), Found: "one more node", Allowed: fmt.Sprintf("at most %d", trace.MaxNodes)}
		}
		nodes = append(nodes, trace.Node{
			Name: names.Name(r, nodeName),
			Capacity: trace.Amounts{
				CPU:    r.Whole(nodeCPU, 1, trace.MaxCPU),
				Memory: r.Whole(nodeMemory, 1, trace.MaxMemory/mebibyte) * mebibyte,
				GPU:    r.Whole(nodeGPU, 0, trace.MaxGPU/1000) * 1000,
			},
			GPUModel: model(r, nodeModel),
		})
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, &table.Error{File: file, Found: "no node", Allowed: "at least one"}
	}
	return nodes, nil
}

// ReadPods reads the list of pods, in the order of the file.
func ReadPods(file string, source io.Reader) ([]trace.Pod, error) {
	var pods []trace.Pod
	r, names := table.NewWithHeader(file, source, podColumns), table.Unique{}
	for r.Next() {
		if len(pods) == trace.MaxPods {
			return nil, &table.Error{File: file, Line: r.Line(), Found: "one more pod", Allowed: fmt.Sprintf("at most %d", trace.MaxPods)}
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
			CPU:    r.Whole(podCPU, 0, trace.MaxCPU),
			Memory: r.Whole(podMemory, 0, trace.MaxMemory/mebibyte) * mebibyte,
			// A pod with one device may share it, and then says how much of it it wants.
			GPU: r.Whole(podGPUs, 0, trace.MaxGPU/1000) * r.Whole(podGPUMilli, 0, 1000),
		},
		Arrival: r.Second(podCreation, 0, ""),
		End:     trace.Never,
	}
	class, ok := classes[r.Text(podQoS)]
	if !ok {
		r.Fail(podQoS, "BE, LS, BestEffort, Burstable, Guaranteed or nothing")
	}
	p.Class = class
	if r.Text(podGPUSpec) != "" {
		for name := range strings.SplitSeq(r.Text(podGPUSpec), "|") {
			if !trace.ValidName(name) {
				r.Fail(podGPUSpec, "names of devices, with | between them")
			}
			p.GPUModels = append(p.GPUModels, strings.Clone(name))
		}
	}
	p.Start = p.Arrival
	if r.Text(podScheduled) != "" {
		p.Start = r.Second(podScheduled, p.Arrival, "the creation_time, or nothing")
	}
	if r.Text(podDeletion) != "" {
		p.End = r.Second(podDeletion, p.Start, "the creation_time and the scheduled_time, or nothing")
	}
	switch r.Text(podPhase) {
	case "Pending", "Running", "Succeeded", "Failed", "Unknown", "":
	default:
		r.Fail(podPhase, "Pending, Running, Succeeded, Failed, Unknown or nothing")
	}
	return p
}

// model returns the name of a device, or nothing.
func model(r *table.Reader, column int) string {
	if r.Text(column) == "" {
		return ""
	}
	return r.Name(column)
}
