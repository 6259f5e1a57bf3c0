package record

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// window has the pods and nodes of a window, as read from the series. Times are in seconds since 1970, 0 if unknown.
type window struct {
	labels map[string]string
	keys   *labelKeys
	pods   map[string]*seenPod
	nodes  map[string]*seenNode
	// replicaSets has the owners of ReplicaSets, by namespace and name.
	replicaSets map[string]owner
	// lastPod and lastNode are the last times at which any pod and any node was exported.
	lastPod, lastNode int64
}

// seenPod is a pod as read from the series.
type seenPod struct {
	namespace, name, uid, node              string
	lastSeen, created, scheduled, started   int64
	completed, finished                     int64
	owners                                  []owner
	createdBy                               owner
	priorityClass, scheduler, restartPolicy string
	hostNetwork                             bool
	labels, selectors                       map[string]string
	tolerations                             []v1.Toleration
	overhead                                v1.ResourceList
	containers, initContainers              map[string]*v1.Container
}

// owner is an owner of a pod or a ReplicaSet.
type owner struct {
	kind, name string
	controller bool
}

// seenNode is a node as read from the series.
type seenNode struct {
	name                  string
	lastSeen, created     int64
	labels                map[string]string
	taints                []v1.Taint
	unschedulable         bool
	allocatable, capacity v1.ResourceList
}

func newWindow(c *Config, keys *labelKeys) *window {
	return &window{
		labels: c.Labels, keys: keys, pods: map[string]*seenPod{}, nodes: map[string]*seenNode{}, replicaSets: map[string]owner{},
	}
}

// get returns the value of a label by its name in kube-state-metrics.
func (w *window) get(metric model.Metric, name string) string {
	return string(metric[model.LabelName(rename(w.labels, name)[0])])
}

// identity returns the identity of the pod of a series: its UID, or its namespace and name if series have no UID.
func (w *window) identity(metric model.Metric) string {
	if uid := w.get(metric, "uid"); uid != "" {
		return uid
	}
	return w.get(metric, "namespace") + "/" + w.get(metric, "pod")
}

// pod returns the pod of a series, nil if kube_pod_info does not have it.
func (w *window) pod(metric model.Metric) *seenPod { return w.pods[w.identity(metric)] }

// seconds returns a time, and 0 for an invalid time.
func seconds(value float64) int64 {
	if !(value > 0 && value < 1<<40) {
		return 0
	}
	return int64(value)
}

// addPod adds a pod, or the later series of a pod whose labels changed.
func (w *window) addPod(metric model.Metric, seen float64) {
	namespace, name, at := w.get(metric, "namespace"), w.get(metric, "pod"), seconds(seen)
	if namespace == "" || name == "" || at == 0 {
		return
	}
	w.lastPod = max(w.lastPod, at)
	id := w.identity(metric)
	p := w.pods[id]
	if p == nil {
		p = &seenPod{
			namespace: namespace, name: name, uid: w.get(metric, "uid"),
			containers: map[string]*v1.Container{}, initContainers: map[string]*v1.Container{},
		}
		w.pods[id] = p
	}
	p.lastSeen = max(p.lastSeen, at)
	p.node = cmp.Or(w.get(metric, "node"), p.node)
	p.createdBy = owner{kind: w.get(metric, "created_by_kind"), name: w.get(metric, "created_by_name"), controller: true}
	p.priorityClass = w.get(metric, "priority_class")
	p.hostNetwork = w.get(metric, "host_network") == "true"
}

// addNode adds a node.
func (w *window) addNode(metric model.Metric, seen float64) {
	name, at := w.get(metric, "node"), seconds(seen)
	if name == "" || at == 0 {
		return
	}
	w.lastNode = max(w.lastNode, at)
	n := w.nodes[name]
	if n == nil {
		n = &seenNode{name: name, labels: map[string]string{}, allocatable: v1.ResourceList{}, capacity: v1.ResourceList{}}
		w.nodes[name] = n
	}
	n.lastSeen = max(n.lastSeen, at)
}

// timeSetter returns a setter of a time of a pod.
func timeSetter(field func(*seenPod) *int64) func(*window, model.Metric, float64) {
	return func(w *window, metric model.Metric, value float64) {
		if p := w.pod(metric); p != nil {
			*field(p) = max(*field(p), seconds(value))
		}
	}
}

var (
	setPodCreated    = timeSetter(func(p *seenPod) *int64 { return &p.created })
	setPodScheduled  = timeSetter(func(p *seenPod) *int64 { return &p.scheduled })
	setPodStarted    = timeSetter(func(p *seenPod) *int64 { return &p.started })
	setPodCompletion = timeSetter(func(p *seenPod) *int64 { return &p.completed })
)

// setFinished sets the first time at which a pod was exported as finished.
func setFinished(w *window, metric model.Metric, value float64) {
	if p, at := w.pod(metric), seconds(value); p != nil && at != 0 && (p.finished == 0 || at < p.finished) {
		p.finished = at
	}
}

func setPodOwner(w *window, metric model.Metric, _ float64) {
	o := owner{w.get(metric, "owner_kind"), w.get(metric, "owner_name"), w.get(metric, "owner_is_controller") == "true"}
	if p := w.pod(metric); p != nil && o.kind != "" && o.name != "" && !slices.Contains(p.owners, o) {
		p.owners = append(p.owners, o)
	}
}

func setReplicaSetOwner(w *window, metric model.Metric, _ float64) {
	o := owner{kind: w.get(metric, "owner_kind"), name: w.get(metric, "owner_name"), controller: true}
	if o.kind != "" && o.name != "" && o.kind != "<none>" {
		w.replicaSets[w.get(metric, "namespace")+"/"+w.get(metric, "replicaset")] = o
	}
}

func setPodLabels(w *window, metric model.Metric, _ float64) {
	if p := w.pod(metric); p != nil {
		p.labels = w.keys.labels(metric, "label_")
	}
}

func setPodSelectors(w *window, metric model.Metric, _ float64) {
	if p := w.pod(metric); p != nil {
		p.selectors = w.keys.labels(metric, "nodeselector_")
	}
}

func setPodToleration(w *window, metric model.Metric, _ float64) {
	p := w.pod(metric)
	if p == nil {
		return
	}
	t := v1.Toleration{
		Key: w.get(metric, "key"), Operator: v1.TolerationOperator(w.get(metric, "operator")), Value: w.get(metric, "value"),
		Effect: v1.TaintEffect(w.get(metric, "effect")),
	}
	if text := w.get(metric, "toleration_seconds"); text != "" {
		if quantity, err := resource.ParseQuantity(text); err == nil && len(text) < 20 {
			value := quantity.Value()
			t.TolerationSeconds = &value
		}
	}
	p.tolerations = append(p.tolerations, t)
}

func setPodScheduler(w *window, metric model.Metric, _ float64) {
	if p := w.pod(metric); p != nil {
		p.scheduler = w.get(metric, "name")
	}
}

func setPodRestartPolicy(w *window, metric model.Metric, _ float64) {
	if p := w.pod(metric); p != nil {
		p.restartPolicy = w.get(metric, "type")
	}
}

func setPodOverheadCPU(w *window, metric model.Metric, value float64) {
	if p := w.pod(metric); p != nil {
		setAmount(&p.overhead, v1.ResourceCPU, value)
	}
}

func setPodOverheadBytes(w *window, metric model.Metric, value float64) {
	if p := w.pod(metric); p != nil {
		setAmount(&p.overhead, v1.ResourceMemory, value)
	}
}

// requests and limits are the lists of a container that a series sets.
func requests(c *v1.Container) *v1.ResourceList { return &c.Resources.Requests }
func limits(c *v1.Container) *v1.ResourceList   { return &c.Resources.Limits }

// containerSetter returns the setter for a series of containers: of an amount, or of the image if list is nil.
func containerSetter(initial bool, list func(*v1.Container) *v1.ResourceList) func(*window, model.Metric, float64) {
	return func(w *window, metric model.Metric, value float64) {
		p, name := w.pod(metric), w.get(metric, "container")
		if p == nil || name == "" {
			return
		}
		containers := p.containers
		if initial {
			containers = p.initContainers
		}
		c := containers[name]
		if c == nil {
			c = &v1.Container{Name: name}
			containers[name] = c
		}
		if list == nil {
			c.Image = cmp.Or(w.get(metric, "image_spec"), w.get(metric, "image"))
			return
		}
		setAmount(list(c), resourceName(w.get(metric, "resource")), value)
	}
}

// setAmount sets an amount of a resource. CPU is in cores. Values that are no amounts are ignored.
func setAmount(list *v1.ResourceList, name v1.ResourceName, value float64) {
	if name == "" || !(value >= 0 && value < 1e15) {
		return
	}
	if *list == nil {
		*list = v1.ResourceList{}
	}
	switch {
	case name == v1.ResourceCPU:
		(*list)[name] = *resource.NewMilliQuantity(int64(math.Round(value*1000)), resource.DecimalSI)
	case name == v1.ResourceMemory, strings.Contains(string(name), "storage"), strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
		(*list)[name] = *resource.NewQuantity(int64(value), resource.BinarySI)
	default:
		(*list)[name] = *resource.NewQuantity(int64(value), resource.DecimalSI)
	}
}

// node returns the node of a series, nil if kube_node_info does not have it.
func (w *window) node(metric model.Metric) *seenNode { return w.nodes[w.get(metric, "node")] }

func setNodeCreated(w *window, metric model.Metric, value float64) {
	if n := w.node(metric); n != nil {
		n.created = max(n.created, seconds(value))
	}
}

func setNodeLabels(w *window, metric model.Metric, _ float64) {
	if n := w.node(metric); n != nil {
		maps.Copy(n.labels, w.keys.labels(metric, "label_"))
	}
}

func setNodeRole(w *window, metric model.Metric, _ float64) {
	if n, role := w.node(metric), w.get(metric, "role"); n != nil && role != "" {
		n.labels["node-role.kubernetes.io/"+role] = ""
	}
}

// conditionTaints is the prefix of the taints that Kubernetes adds while a node is not ready, under pressure or cordoned.
// They are not recorded.
const conditionTaints = "node.kubernetes.io/"

// setNodeTaint adds a taint that the node had when it was last exported.
func setNodeTaint(w *window, metric model.Metric, seen float64) {
	key := w.get(metric, "key")
	if n := w.node(metric); n != nil && seconds(seen) >= n.lastSeen && !strings.HasPrefix(key, conditionTaints) {
		n.taints = append(n.taints, v1.Taint{
			Key: key, Value: w.get(metric, "value"), Effect: v1.TaintEffect(w.get(metric, "effect")),
		})
	}
}

func setNodeUnschedulable(w *window, metric model.Metric, value float64) {
	if n := w.node(metric); n != nil {
		n.unschedulable = value == 1
	}
}

func setNodeAllocatable(w *window, metric model.Metric, value float64) {
	if n := w.node(metric); n != nil {
		setAmount(&n.allocatable, resourceName(w.get(metric, "resource")), value)
	}
}

func setNodeCapacity(w *window, metric model.Metric, value float64) {
	if n := w.node(metric); n != nil {
		setAmount(&n.capacity, resourceName(w.get(metric, "resource")), value)
	}
}
