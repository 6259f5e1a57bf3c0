package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/spec"
)

const mebibyte = 1 << 20

// The columns of the openb trace in its published form: the nodes and pods of a production cluster
// with GPUs (Alibaba cluster-trace-gpu-v2023), in a file each with a header. The trace has requests and
// times but neither limits, usage nor workloads.
//
// Its classes BE and LS are not QoS classes of Kubernetes: pods of both have requests. Its 8,152 pods
// are spread over five months, so that few run at once: they arrive faster (pack), or in a steady state (churn).
var (
	nodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	podColumns  = []string{
		"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time",
	}
)

// openbPod is a pod of the trace, with the class, the GPU models, and the second at which the pod was scheduled.
type openbPod struct {
	InputPod
	class, models string
	start         int64
}

// inputOfOpenb reads the openb trace. The generated limits and the churn depend on the seed.
func (s Source) inputOfOpenb(seed uint64, limits Limits) (Input, error) {
	kind, rest := spec.Cut(s.Trace)
	nodeFile, rest, _ := strings.Cut(rest, ",")
	podFile, options, _ := strings.Cut(rest, ",")
	if kind != "openb" || nodeFile == "" || podFile == "" {
		return Input{}, fmt.Errorf("--trace: invalid value %q: must be openb:NODES.csv,PODS.csv", s.Trace)
	}
	steady, err := openbOptions(options)
	if err != nil {
		return Input{}, fmt.Errorf("--trace: %w", err)
	}
	nodes, err := manifest.Open(nodeFile, readNodes)
	if err != nil {
		return Input{}, fmt.Errorf("--trace: %w", err)
	}
	pods, err := manifest.Open(podFile, readPods)
	if err != nil {
		return Input{}, fmt.Errorf("--trace: %w", err)
	}
	in := Input{Name: "trace: " + s.Trace, Nodes: nodes}
	in.assume("the trace names no workloads: equal pods of which each arrives within an hour of the one before are one (%d workloads), "+
		"and those of the class BE are batch jobs", arrange(pods))
	switch pack := s.podsPerSecond(); {
	case steady.fill > 0 && s.Pack > 0:
		return in, fmt.Errorf("--pack: invalid value %d: must be 0 or absent with fill in --trace", s.Pack)
	case steady.fill > 0:
		if err := in.addChurn(pods, steady, seed); err != nil {
			return in, fmt.Errorf("--trace: fill: %w", err)
		}
	default:
		in.addPods(pods, pack)
	}
	in.Complete(limits, seed)
	return in, nil
}

// addPods adds the pods of the trace. If podsPerSecond is not 0, as many pods arrive in each second and do not end, so that
// they fill the cluster.
func (in *Input) addPods(pods []openbPod, podsPerSecond int) {
	for i := range pods {
		p := pods[i].InputPod
		if podsPerSecond > 0 {
			p.Arrival, p.Duration = int64(i/podsPerSecond), Never
		}
		in.Pods = append(in.Pods, p)
	}
	in.assumeIf(podsPerSecond > 0, "pods arrive in the order of the trace at %d per second, and do not end", podsPerSecond)
}

// openbOptions parses the options of openb.
func openbOptions(text string) (churn, error) {
	const day, year = 24 * 3600, 365 * 24 * 3600
	fields, err := spec.Parse(text)
	if err != nil {
		return churn{}, err
	}
	c := churn{fill: fields.Share("fill", 0, 0.01, maxFill), seconds: int64(fields.Int("over", day, 1, year))}
	if c.fill == 0 && fields.Has("over") {
		fields.Fail("over", fmt.Sprint(c.seconds), "absent without fill")
	}
	return c, fields.Err()
}

// groupGap is the longest time in seconds between the arrivals of two consecutive pods of a workload.
const groupGap = 3600

// arrange orders pods by their arrival, the first pod at second 0. It sets their workloads, as the trace does not name workloads, and
// returns how many there are. A workload consists of equal pods, each of which arrives within groupGap of the pod before.
func arrange(pods []openbPod) (workloads int) {
	slices.SortStableFunc(pods, func(a, b openbPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for i := len(pods) - 1; i >= 0; i-- {
		pods[i].Arrival, pods[i].start = pods[i].Arrival-pods[0].Arrival, pods[i].start-pods[0].Arrival
	}
	type kind struct {
		requests      resources.Amounts
		class, models string
	}
	last := map[kind]*openbPod{}
	for i := range pods {
		p := &pods[i]
		key := kind{p.Requests, p.class, p.models}
		if previous := last[key]; previous != nil && p.Arrival-previous.Arrival <= groupGap {
			p.Workload = previous.Workload
		} else {
			p.Workload = &Workload{Name: fmt.Sprintf("group-%05d", workloads), IsJob: p.class == classBestEffort}
			workloads++
		}
		last[key] = p
	}
	return workloads
}

// OpenbGPU is the resource name for thousandths of GPUs in the trace, summed over the devices of a node. kube-scheduler validates
// names outside of its own domain at every node, which takes a quarter of a run.
const OpenbGPU v1.ResourceName = "kubernetes.io/gpu-thousandths"

// readNodes reads the file of nodes.
func readNodes(source io.Reader) ([]Node, error) {
	var nodes []Node
	t := newTable(source, nodeColumns)
	for t.next() {
		if len(nodes) == maxNodes {
			return nil, fmt.Errorf("line %d: found more than %d nodes: must have at most %[2]d", t.line, maxNodes)
		}
		n := NewNode(t.unique("sn"), resources.Amounts{
			CPU:      t.integer("cpu_milli", 1, maxCPU),
			Memory:   t.integer("memory_mib", 1, maxMemory/mebibyte) * mebibyte,
			Extended: devices(OpenbGPU, t.integer("gpu", 0, maxGPU/1000)*1000),
		})
		if t.text("model") != "" {
			n.Object.Labels[GPUModelLabel] = t.name("model")
		}
		nodes = append(nodes, n)
	}
	if t.err == nil && len(nodes) == 0 {
		return nil, errors.New("found no nodes: must have at least one")
	}
	return nodes, t.err
}

// readPods reads the file of pods and keeps its order.
func readPods(source io.Reader) ([]openbPod, error) {
	var pods []openbPod
	t := newTable(source, podColumns)
	for t.next() {
		if len(pods) == maxPods {
			return nil, fmt.Errorf("line %d: found more than %d pods: must have at most %[2]d", t.line, maxPods)
		}
		pods = append(pods, readPod(t))
	}
	return pods, t.err
}

// classBestEffort is the class of batch jobs. openbClasses maps the names of classes that are in use to one name each.
const classBestEffort = "BE"

var openbClasses = map[string]string{
	"": "", "BE": classBestEffort, "BestEffort": classBestEffort, "Burstable": "Burstable", "Guaranteed": "Guaranteed", "LS": "LS",
}

func readPod(t *table) openbPod {
	p := openbPod{InputPod: NewPod(t.unique("name"), resources.Amounts{
		CPU:    t.integer("cpu_milli", 0, maxCPU),
		Memory: t.integer("memory_mib", 0, maxMemory/mebibyte) * mebibyte,
		// A pod with one device may request a part of the device.
		Extended: devices(OpenbGPU, t.integer("num_gpu", 0, maxGPU/1000)*t.integer("gpu_milli", 0, 1000)),
	}, t.second("creation_time", 0, ""), Never)}
	class, ok := openbClasses[t.text("qos")]
	if !ok {
		t.fail("qos", "BE, LS, BestEffort, Burstable, Guaranteed or empty")
	}
	p.class = class
	if p.models = t.text("gpu_spec"); p.models != "" {
		names := strings.Split(p.models, "|")
		if slices.ContainsFunc(names, func(name string) bool { return !validName.MatchString(name) }) {
			t.fail("gpu_spec", "names of GPU models separated by |")
		}
		requireGPUModels(p.Object, names, p.Requests)
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
func requireGPUModels(pod *v1.Pod, models []string, requests resources.Amounts) {
	if requests.Extended.IsZero() {
		return
	}
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: GPUModelLabel, Operator: v1.NodeSelectorOpIn, Values: models}},
		}}},
	}}
}
