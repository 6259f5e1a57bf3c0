package record

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

// The series of kube-state-metrics v2 and cAdvisor that have a meaning besides the fields that they set.
const (
	podInfo        = "kube_pod_info"
	podPhase       = "kube_pod_status_phase"
	podStartTime   = "kube_pod_start_time"
	podLabels      = "kube_pod_labels"
	podTolerations = "kube_pod_tolerations"
	podSelectors   = "kube_pod_nodeselectors"
	containerInfo  = "kube_pod_container_info"
	scalerInfo     = "kube_horizontalpodautoscaler_info"
	// initContainerInfo has the label restart_policy of sidecars from kube-state-metrics 2.11 on.
	initContainerInfo = "kube_pod_init_container_info"
	nodeInfo          = "kube_node_info"
	nodeLabels        = "kube_node_labels"

	containerCPU    = prometheus.ContainerCPU
	containerMemory = prometheus.ContainerMemory
)

// aspect is what a query returns about a series.
type aspect int

const (
	// lastValue is the last value.
	lastValue aspect = iota
	// lastTime is the last time at which the series was exported.
	lastTime
	// firstTime is the first time at which the series was exported.
	firstTime
	// firstFinished is the first time at which kube_pod_status_phase was exported for a finished pod.
	firstFinished
)

// series is a series of kube-state-metrics that describes pods, nodes or what acts on requests.
type series struct {
	name   string
	aspect aspect
	// by are the labels that are kept, all labels if by is empty. A label that the result lacks is empty.
	by []string
	// missing describes the effect if a cluster with pods lacks the series, empty if this is normal.
	missing string
	// set adds a sample of the series to the pods, nodes or objects of a window.
	set func(sample)
}

// ofNode, ofPod and ofContainer return the labels that are kept of series of nodes, pods and containers.
func ofNode(labels ...string) []string { return append([]string{"node"}, labels...) }

func ofPod(labels ...string) []string { return append([]string{"namespace", "pod", "uid"}, labels...) }

func ofContainer(labels ...string) []string { return append(ofPod("container"), labels...) }

func ofScaler(labels ...string) []string {
	return append([]string{"namespace", "horizontalpodautoscaler"}, labels...)
}

// described are the series that describe pods, nodes and what acts on requests. The first two list pods and nodes.
var described = []series{
	{podInfo, lastTime, ofPod("node", "created_by_kind", "created_by_name", "priority_class", "host_network"), "", sample.addPod},
	{nodeInfo, lastTime, ofNode(), "", sample.addNode},
	{podPhase, firstFinished, ofPod(), "", onPod(setFinished)},
	{
		"kube_pod_created", lastValue, ofPod(), "the time at which a pod was first seen, scheduled or started is used as its creation",
		podTime(func(p *podState) *int64 { return &p.created }),
	},
	{
		"kube_pod_status_scheduled_time", lastValue, ofPod(), "a pod with a node is taken as scheduled when it was started",
		podTime(func(p *podState) *int64 { return &p.scheduled }),
	},
	{
		podStartTime, lastValue, ofPod(), "a pod is taken as started when it was scheduled",
		podTime(func(p *podState) *int64 { return &p.started }),
	},
	{"kube_pod_completion_time", lastValue, ofPod(), "", podTime(func(p *podState) *int64 { return &p.completed })},
	{podLabels, lastValue, nil, "", onPod(func(p *podState, s sample) { p.object.Labels = s.prefixed("label_") })},
	{
		podTolerations, lastValue, ofPod("key", "operator", "value", "effect", "toleration_seconds"),
		"a pod tolerates the taints of the node that it ran on", onPod(addToleration),
	},
	{podSelectors, lastValue, nil, "", onPod(func(p *podState, s sample) { p.object.Spec.NodeSelector = s.prefixed("nodeselector_") })},
	{
		"kube_pod_scheduler", lastValue, ofPod("name"), "all pods have the default scheduler",
		onPod(func(p *podState, s sample) { p.object.Spec.SchedulerName = s.label("name") }),
	},
	{
		"kube_pod_restart_policy", lastValue, ofPod("type"), "all pods have the default restart policy",
		onPod(func(p *podState, s sample) { p.object.Spec.RestartPolicy = v1.RestartPolicy(s.label("type")) }),
	},
	{
		"kube_pod_overhead_cpu_cores", lastValue, ofPod(), "",
		onPod(func(p *podState, s sample) { setAmount(&p.object.Spec.Overhead, v1.ResourceCPU, s.value) }),
	},
	{
		"kube_pod_overhead_memory_bytes", lastValue, ofPod(), "",
		onPod(func(p *podState, s sample) { setAmount(&p.object.Spec.Overhead, v1.ResourceMemory, s.value) }),
	},
	{
		containerInfo, lastValue, ofContainer("image_spec", "image"), "containers without requests and limits are unknown",
		onContainer(setImage),
	},
	{"kube_pod_container_resource_requests", lastValue, ofContainer("resource"), "no container has a request", onContainer(setRequest)},
	{"kube_pod_container_resource_limits", lastValue, ofContainer("resource"), "no container has a limit", onContainer(setLimit)},
	{initContainerInfo, lastValue, ofContainer("image_spec", "image", "restart_policy"), "", onInitContainer(setInitContainer)},
	{"kube_pod_init_container_resource_requests", lastValue, ofContainer("resource"), "", onInitContainer(setRequest)},
	{"kube_pod_init_container_resource_limits", lastValue, ofContainer("resource"), "", onInitContainer(setLimit)},
	{
		"kube_replicaset_owner", lastValue,
		[]string{"namespace", "replicaset", "owner_kind", "owner_name"},
		"the Deployments of ReplicaSets are unknown", sample.addReplicaSetOwner,
	},

	{
		"kube_node_created", lastValue, ofNode(), "the time at which a node was first seen is used as its creation",
		onNode(func(n *nodeState, s sample) { n.created = max(n.created, seconds(s.value)) }),
	},
	{nodeLabels, lastValue, nil, "", onNode(setNodeLabels)},
	{"kube_node_role", lastTime, ofNode("role"), "", onNode(addNodeRole)},
	{"kube_node_spec_taint", lastTime, ofNode("key", "value", "effect"), "", onNode(addTaint)},
	{
		"kube_node_spec_unschedulable", lastValue, ofNode(), "all nodes are schedulable",
		onNode(func(n *nodeState, s sample) { n.object.Spec.Unschedulable = s.value == 1 }),
	},
	{
		"kube_node_status_allocatable", lastValue, ofNode("resource"), "the capacity of a node is used as its allocatable resources",
		onNode(func(n *nodeState, s sample) { s.setResource(&n.object.Status.Allocatable) }),
	},
	{
		"kube_node_status_capacity", lastValue, ofNode("resource"), "",
		onNode(func(n *nodeState, s sample) { s.setResource(&n.object.Status.Capacity) }),
	},

	{
		scalerInfo, lastValue, ofScaler("scaletargetref_kind", "scaletargetref_name"), "no HorizontalPodAutoscaler is known",
		onObject(setScaled),
	},
	{
		"kube_horizontalpodautoscaler_spec_target_metric", lastValue, ofScaler("metric_name", "metric_target_type"),
		"no target of HorizontalPodAutoscalers is known", onObject(addTarget),
	},
	{"kube_horizontalpodautoscaler_spec_min_replicas", lastValue, ofScaler(), "", onObject(setMinimum)},
	{"kube_horizontalpodautoscaler_spec_max_replicas", lastValue, ofScaler(), "", onObject(setMaximum)},
	{
		"kube_limitrange", lastValue,
		[]string{"namespace", "limitrange", "resource", "type", "constraint"},
		"no LimitRange is known",
		onObject(addLimit),
	},
	{
		"kube_resourcequota", lastValue,
		[]string{"namespace", "resourcequota", "resource", "type"},
		"no ResourceQuota is known",
		onObject(addQuota),
	},
}

// firstSeen are the times at which objects were first seen, which are read if the times of their creation are not exported.
var firstSeen = []series{
	{podInfo, firstTime, ofPod("node"), "", onPod(setFirst)},
	{nodeInfo, firstTime, ofNode(), "", onNode(func(n *nodeState, s sample) { n.firstSeen = earliest(n.firstSeen, seconds(s.value)) })},
}

// SeriesNames returns the names of all series that are read.
func SeriesNames() (names []string) {
	for _, s := range described {
		names = append(names, s.name)
	}
	return append(names, containerCPU, containerMemory)
}

// labelNames returns the names of the labels that are kept of series, sorted.
func labelNames() []string {
	names := sets.New[string]()
	for _, s := range described {
		names.Insert(s.identity()...)
		names.Insert(s.by...)
	}
	return sets.List(names)
}

// usageLabels are the labels of the usage of pods.
var usageLabels = []string{"namespace", "pod", "container"}

// promDuration returns a duration in the notation of Prometheus.
func promDuration(d time.Duration) string { return fmt.Sprintf("%ds", int64(d.Seconds())) }

// query returns the query for a series within a duration.
func (c *Config) query(s series, within time.Duration) string {
	selector, _ := c.series(s.name)
	labels, over, step := strings.Join(rename(c.Labels, s.by...), ", "), promDuration(within), promDuration(c.Step)
	switch s.aspect {
	case lastTime:
		return fmt.Sprintf("max by (%s) (max_over_time(timestamp(%s)[%s:%s]))", labels, selector, over, step)
	case firstTime:
		return fmt.Sprintf("min by (%s) (min_over_time(timestamp(%s)[%s:%s]))", labels, selector, over, step)
	case firstFinished:
		selector, _ = c.series(s.name, `phase=~"Succeeded|Failed"`)
		return fmt.Sprintf("min by (%s) (min_over_time(timestamp(%s == 1)[%s:%s]))", labels, selector, over, step)
	case lastValue:
	}
	// An object has several series if kube-state-metrics moved or a label changed. The series with the newest sample counts at the end of
	// the window, and any of them for an object that does not exist then.
	id := strings.Join(rename(c.Labels, s.identity()...), ", ")
	kept := id
	if len(s.by) > 0 {
		kept = labels
	}
	newest := fmt.Sprintf("(%s and topk by (%s) (1, timestamp(%s)))", selector, kept, selector)
	last := fmt.Sprintf("last_over_time(%s[%s]) unless on (%s) %s", selector, over, id, selector)
	if len(s.by) == 0 {
		return fmt.Sprintf("%s or (%s)", newest, last)
	}
	return fmt.Sprintf("max by (%s) (%s or (%s))", labels, newest, last)
}

// identity returns the labels that identify the object of a series.
func (s series) identity() []string {
	switch {
	case strings.HasPrefix(s.name, "kube_node_"):
		return ofNode()
	case strings.HasPrefix(s.name, "kube_pod_"):
		return ofPod()
	}
	return s.by[:2] // the namespace and the name
}

// usageQueries returns the queries for CPU in cores and memory in bytes, one series per pod.
func (c *Config) usageQueries() (cpu, memory string) {
	labels := rename(c.UsageLabels, usageLabels...)
	return prometheus.PodQueries(&c.Server, c.series, strings.Join(labels[:2], ", "), labels[1], labels[2])
}
