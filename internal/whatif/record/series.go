package record

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// The series of kube-state-metrics v2 that are read.
const (
	podInfo          = "kube_pod_info"
	podCreated       = "kube_pod_created"
	podScheduledTime = "kube_pod_status_scheduled_time"
	podStartTime     = "kube_pod_start_time"
	podCompletion    = "kube_pod_completion_time"
	podPhase         = "kube_pod_status_phase"
	podOwner         = "kube_pod_owner"
	podLabels        = "kube_pod_labels"
	podTolerations   = "kube_pod_tolerations"
	podSelectors     = "kube_pod_nodeselectors"
	podScheduler     = "kube_pod_scheduler"
	podRestartPolicy = "kube_pod_restart_policy"
	podOverheadCPU   = "kube_pod_overhead_cpu_cores"
	podOverheadBytes = "kube_pod_overhead_memory_bytes"
	containerInfo    = "kube_pod_container_info"
	containerRequest = "kube_pod_container_resource_requests"
	containerLimit   = "kube_pod_container_resource_limits"
	initInfo         = "kube_pod_init_container_info"
	initRequest      = "kube_pod_init_container_resource_requests"
	initLimit        = "kube_pod_init_container_resource_limits"
	replicaSetOwner  = "kube_replicaset_owner"

	nodeInfo          = "kube_node_info"
	nodeCreated       = "kube_node_created"
	nodeLabels        = "kube_node_labels"
	nodeRole          = "kube_node_role"
	nodeTaint         = "kube_node_spec_taint"
	nodeUnschedulable = "kube_node_spec_unschedulable"
	nodeAllocatable   = "kube_node_status_allocatable"
	nodeCapacity      = "kube_node_status_capacity"

	containerCPU    = "container_cpu_usage_seconds_total"
	containerMemory = "container_memory_working_set_bytes"
)

// series is a series of kube-state-metrics that describes pods or nodes.
type series struct {
	name string
	// by are the labels that are kept, all labels if by is empty. A label that the result lacks is empty.
	by []string
	// missing describes the effect if a cluster with pods lacks the series, empty if this is normal.
	missing string
	// seen is true if the last time at which the series was exported is used instead of its value.
	seen bool
	// set adds the value of a series to the pods or nodes of a window.
	set func(w *window, metric model.Metric, value float64)
}

// podIdentity are the labels that identify a pod.
var podIdentity = []string{"namespace", "pod", "uid"}

// ofPod and ofContainer return the labels that are kept of series of pods and containers.
func ofPod(labels ...string) []string { return append(podIdentity[:3:3], labels...) }

func ofContainer(labels ...string) []string {
	return ofPod(append([]string{"container"}, labels...)...)
}

// described are the series that describe pods and nodes, other than kube_pod_info and kube_node_info.
var described = []series{
	{podCreated, podIdentity, "the time at which a pod was first seen is used as its creation", false, setPodCreated},
	{podScheduledTime, podIdentity, "a pod with a node is taken as scheduled when it was started", false, setPodScheduled},
	{podStartTime, podIdentity, "a pod is taken as started when it was scheduled", false, setPodStarted},
	{podCompletion, podIdentity, "", false, setPodCompletion},
	{
		podOwner, ofPod("owner_kind", "owner_name", "owner_is_controller"),
		"the owner in kube_pod_info is used", false, setPodOwner,
	},
	{podLabels, nil, "", false, setPodLabels},
	{
		podTolerations, ofPod("key", "operator", "value", "effect", "toleration_seconds"),
		"a pod tolerates the taints of the node that it ran on", false, setPodToleration,
	},
	{podSelectors, nil, "", false, setPodSelectors},
	{podScheduler, ofPod("name"), "all pods have the default scheduler", false, setPodScheduler},
	{podRestartPolicy, ofPod("type"), "all pods have the default restart policy", false, setPodRestartPolicy},
	{podOverheadCPU, podIdentity, "", false, setPodOverheadCPU},
	{podOverheadBytes, podIdentity, "", false, setPodOverheadBytes},
	{
		containerInfo, ofContainer("image_spec", "image"), "containers without requests and limits are unknown", false,
		containerSetter(false, nil),
	},
	{containerRequest, ofContainer("resource"), "no container has a request", false, containerSetter(false, requests)},
	{containerLimit, ofContainer("resource"), "no container has a limit", false, containerSetter(false, limits)},
	{initInfo, ofContainer("image_spec", "image"), "", false, containerSetter(true, nil)},
	{initRequest, ofContainer("resource"), "", false, containerSetter(true, requests)},
	{initLimit, ofContainer("resource"), "", false, containerSetter(true, limits)},
	{
		replicaSetOwner,
		[]string{"namespace", "replicaset", "owner_kind", "owner_name"},
		"the Deployments of ReplicaSets are unknown", false, setReplicaSetOwner,
	},

	{nodeCreated, []string{"node"}, "the time at which a node was first seen is used as its creation", false, setNodeCreated},
	{nodeLabels, nil, "", false, setNodeLabels},
	{nodeRole, []string{"node", "role"}, "", false, setNodeRole},
	{nodeTaint, []string{"node", "key", "value", "effect"}, "", true, setNodeTaint},
	{nodeUnschedulable, []string{"node"}, "all nodes are schedulable", false, setNodeUnschedulable},
	{
		nodeAllocatable,
		[]string{"node", "resource"},
		"the capacity of a node is used as its allocatable resources", false, setNodeAllocatable,
	},
	{nodeCapacity, []string{"node", "resource"}, "", false, setNodeCapacity},
}

// SeriesNames returns the names of all series that are read.
func SeriesNames() []string {
	names := []string{podInfo, podPhase, nodeInfo}
	for _, s := range described {
		names = append(names, s.name)
	}
	return append(names, containerCPU, containerMemory)
}

// promDuration returns a duration in the notation of Prometheus.
func promDuration(d time.Duration) string { return fmt.Sprintf("%ds", int64(d.Seconds())) }

// lastQuery returns the query for the last value of each series within a duration.
func (c *Config) lastQuery(s series, within time.Duration) (string, bool) {
	selector, ok := c.series(s.name)
	if s.seen {
		return c.seenQuery(s.name, s.by, within), ok
	}
	query := fmt.Sprintf("last_over_time(%s[%s])", selector, promDuration(within))
	if len(s.by) > 0 {
		query = fmt.Sprintf("max by (%s) (%s)", strings.Join(rename(c.Labels, s.by...), ", "), query)
	}
	return query, ok
}

// seenQuery returns the query for the last time at which each object was exported within a duration.
func (c *Config) seenQuery(name string, by []string, within time.Duration) string {
	selector, _ := c.series(name)
	return fmt.Sprintf("max by (%s) (max_over_time(timestamp(%s)[%s:%s]))",
		strings.Join(rename(c.Labels, by...), ", "), selector, promDuration(within), promDuration(c.Step))
}

// finishedQuery returns the query for the first time at which each pod was exported as finished within a duration.
func (c *Config) finishedQuery(within time.Duration) (string, bool) {
	selector, ok := c.series(podPhase, `phase=~"Succeeded|Failed"`)
	return fmt.Sprintf("min by (%s) (min_over_time(timestamp(%s == 1)[%s:%s]))",
		strings.Join(rename(c.Labels, podIdentity...), ", "), selector, promDuration(within), promDuration(c.Step)), ok
}

// usageQueries returns the queries for CPU in cores and memory in bytes, one series per pod.
//
// Each container has a series, and so have the pod itself (without the label container) and its pause container (POD, or no
// label either). The inner maximum counts a container once that is scraped twice or was restarted.
func (c *Config) usageQueries() (cpu, memory string) {
	labels := rename(c.UsageLabels, "namespace", "pod", "container")
	pod, container := strings.Join(labels[:2], ", "), strings.Join(labels, ", ")
	sum := func(expression string) string {
		return fmt.Sprintf("sum by (%s) (max by (%s) (%s))", pod, container, expression)
	}
	containers := func(name string) (string, bool) {
		return c.series(name, labels[2]+`!=""`, labels[2]+`!="POD"`, labels[1]+`!=""`)
	}
	if selector, ok := containers(containerCPU); ok {
		cpu = sum(fmt.Sprintf("rate(%s[%s])", selector, promDuration(c.RateWindow)))
	}
	if selector, ok := containers(containerMemory); ok {
		memory = sum(selector)
	}
	if c.CPUQuery != "" {
		cpu = c.CPUQuery
	}
	if c.MemoryQuery != "" {
		memory = c.MemoryQuery
	}
	return cpu, memory
}
