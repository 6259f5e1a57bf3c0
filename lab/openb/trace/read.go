package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

const mebibyte = 1 << 20

// The columns of the openb trace in its published form: the nodes and pods of a production cluster
// with GPUs (Alibaba cluster-trace-gpu-v2023), in a file each with a header. The trace has requests and
// times but neither limits, usage nor workloads.
//
// Its classes BE and LS are not QoS classes of Kubernetes: pods of both have requests. Its 8,152 pods
// are spread over five months, so that few run at once: they arrive faster, or in a steady state.
var (
	nodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	podColumns  = []string{
		"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time",
	}
)

// pod is a pod of the trace, with the class, the GPU models, and the second at which the pod was scheduled.
type pod struct {
	generate.NewPod
	class, models string
	start         int64
}

// groupGap is the longest time in seconds between the arrivals of two consecutive pods of a workload.
const groupGap = 3600

// arrange orders pods by their arrival, the first pod at second 0. It sets their workloads, as the trace does not name
// workloads. A workload consists of equal pods, each of which arrives within groupGap of the pod before.
func arrange(pods []pod) {
	slices.SortStableFunc(pods, func(a, b pod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for i := len(pods) - 1; i >= 0; i-- {
		pods[i].Arrival, pods[i].start = pods[i].Arrival-pods[0].Arrival, pods[i].start-pods[0].Arrival
	}
	type kind struct {
		requests      resources.Amounts
		class, models string
	}
	last, workloads := map[kind]*pod{}, 0
	for i := range pods {
		p := &pods[i]
		key := kind{p.Requests, p.class, p.models}
		if previous := last[key]; previous != nil && p.Arrival-previous.Arrival <= groupGap {
			p.Owner = previous.Owner
		} else {
			p.Owner = &generate.Owner{Name: fmt.Sprintf("group-%05d", workloads), IsJob: p.class == classBestEffort}
			workloads++
		}
		last[key] = p
	}
}

// OpenbGPU is the resource name for thousandths of GPUs in the trace, summed over the devices of a node. kube-scheduler validates
// names outside of its own domain at every node, which takes a quarter of a run.
const OpenbGPU v1.ResourceName = "kubernetes.io/gpu-thousandths"

// devices returns an amount of GPUs in thousandths.
func devices(n int64) resources.ExtendedAmounts {
	return resources.ExtendedAmounts{}.With(OpenbGPU, n)
}

// readNodes reads the file of nodes.
func readNodes(source io.Reader) ([]recording.Node, error) {
	var nodes []recording.Node
	t := newTable(source, nodeColumns)
	for t.next() {
		if len(nodes) == maxNodes {
			return nil, fmt.Errorf("line %d: found more than %d nodes: must have at most %[2]d", t.line, maxNodes)
		}
		n := generate.NewNode(t.unique("sn"), resources.Amounts{
			CPU:      t.integer("cpu_milli", 1, maxCPU),
			Memory:   t.integer("memory_mib", 1, maxMemory/mebibyte) * mebibyte,
			Extended: devices(t.integer("gpu", 0, maxGPU/1000) * 1000),
		})
		if t.text("model") != "" {
			n.Object.Labels[generate.GPUModelLabel] = t.name("model")
		}
		nodes = append(nodes, n)
	}
	if t.err == nil && len(nodes) == 0 {
		return nil, errors.New("found no nodes: must have at least one")
	}
	return nodes, t.err
}

// readPods reads the file of pods and keeps its order.
func readPods(source io.Reader) ([]pod, error) {
	var pods []pod
	t := newTable(source, podColumns)
	for t.next() {
		if len(pods) == maxPods {
			return nil, fmt.Errorf("line %d: found more than %d pods: must have at most %[2]d", t.line, maxPods)
		}
		pods = append(pods, readPod(t))
	}
	return pods, t.err
}

// classBestEffort is the class of batch jobs. classes maps the names of classes that are in use to one name each.
const classBestEffort = "BE"

var classes = map[string]string{
	"": "", "BE": classBestEffort, "BestEffort": classBestEffort, "Burstable": "Burstable", "Guaranteed": "Guaranteed", "LS": "LS",
}

func readPod(t *table) pod {
	p := pod{NewPod: generate.NewPod{Name: t.unique("name"), Duration: recording.Never}}
	p.Requests = resources.Amounts{
		CPU:    t.integer("cpu_milli", 0, maxCPU),
		Memory: t.integer("memory_mib", 0, maxMemory/mebibyte) * mebibyte,
		// A pod with one device may request a part of the device.
		Extended: devices(t.integer("num_gpu", 0, maxGPU/1000) * t.integer("gpu_milli", 0, 1000)),
	}
	p.Arrival = t.second("creation_time", 0, "")
	class, ok := classes[t.text("qos")]
	if !ok {
		t.fail("qos", "BE, LS, BestEffort, Burstable, Guaranteed or empty")
	}
	p.class = class
	if p.models = t.text("gpu_spec"); p.models != "" {
		names := strings.Split(p.models, "|")
		if slices.ContainsFunc(names, func(name string) bool { return !validName.MatchString(name) }) {
			t.fail("gpu_spec", "names of GPU models separated by |")
		}
		requireGPUModels(&p.Spec, names, p.Requests)
	}
	p.start = p.Arrival
	if t.text("scheduled_time") != "" {
		p.start = t.second("scheduled_time", p.Arrival, "the creation_time, or empty")
	}
	if t.text("deletion_time") != "" {
		p.Duration = t.second("deletion_time", p.start, "the creation_time and the scheduled_time, or empty") - p.start
	}
	return p
}

// requireGPUModels lets a pod that requests GPUs run only on nodes with one of the models.
func requireGPUModels(spec *v1.PodSpec, models []string, requests resources.Amounts) {
	if requests.Extended.IsZero() {
		return
	}
	spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: generate.GPUModelLabel, Operator: v1.NodeSelectorOpIn, Values: models}},
		}}},
	}}
}
