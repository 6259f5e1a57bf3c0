package record

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// window has the pods and nodes of a window, as read from the series.
type window struct {
	labels map[string]string
	keys   *labelKeys
	pods   map[string]*podState
	nodes  map[string]*nodeState
	// replicaSets has the owners of ReplicaSets, by namespace and name.
	replicaSets map[string]metav1.OwnerReference
	// objects act on requests, by the resource name of their kind, such as limitranges, namespace and name.
	objects map[string]runtime.Object
	// lastPod and lastNode are the last times at which any pod and any node was exported, in seconds since 1970.
	lastPod, lastNode int64
}

// podState is a pod in a window. Times are in seconds since 1970, 0 if they are unknown.
type podState struct {
	// object is the pod as read from the series, nil once it is written.
	object *v1.Pod
	// name is the namespace and the name.
	name, node                                              string
	lastSeen, created, scheduled, started, completed, ended int64
	// firstSeen and firstBound are the first times in the window at which the pod was exported, and was exported with a node. They are
	// unknown if the series have the creation of pods.
	firstSeen, firstBound int64

	// key is the key in the recording, hash the hash of the object that was written last.
	key         recording.PodKey
	hash        uint64
	cpu, memory recording.Series
}

// nodeState is a node in a window. Times are in seconds since 1970, 0 if they are unknown.
type nodeState struct {
	object *v1.Node
	// firstSeen is the first time in the window at which the node was exported, unknown if the series have the creation of nodes.
	lastSeen, created, firstSeen int64

	// hash is the hash of the object that was written last.
	hash uint64
}

// sample is the value of a series in a window.
type sample struct {
	*window
	metric model.Metric
	value  float64
}

// label returns the value of a label by its name in kube-state-metrics.
func (s sample) label(name string) string {
	return string(s.metric[model.LabelName(rename(s.labels, name)[0])])
}

// prefixed returns the labels whose names have a prefix, such as label_, by their original keys.
func (s sample) prefixed(prefix string) map[string]string { return s.keys.labels(s.metric, prefix) }

// owner returns the owner in two labels, and false if there is none.
func (s sample) owner(kindLabel, nameLabel string) (metav1.OwnerReference, bool) {
	kind, name := s.label(kindLabel), s.label(nameLabel)
	ref := metav1.OwnerReference{APIVersion: cmp.Or(apiVersions[kind], "unknown/v1"), Kind: kind, Name: name}
	return ref, kind != "" && kind != "<none>" && name != ""
}

// podID returns the identity of the pod of a series: its UID, or its namespace and name if series have no UID.
func (s sample) podID() string {
	return cmp.Or(s.label("uid"), s.label("namespace")+"/"+s.label("pod"))
}

// seconds returns a time, and 0 for an invalid time.
func seconds(value float64) int64 {
	if !(value > 0 && value < 1<<40) {
		return 0
	}
	return int64(value)
}

// addPod adds a pod, or the later series of a pod whose labels changed.
func (s sample) addPod() {
	namespace, name, at := s.label("namespace"), s.label("pod"), seconds(s.value)
	if namespace == "" || name == "" || at == 0 {
		return
	}
	s.lastPod = max(s.lastPod, at)
	id := s.podID()
	p := s.pods[id]
	if p == nil {
		p = &podState{name: namespace + "/" + name, object: &v1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(s.label("uid"))},
		}}
		s.pods[id] = p
	}
	p.lastSeen = max(p.lastSeen, at)
	p.node = cmp.Or(s.label("node"), p.node)
	p.object.OwnerReferences = nil
	if owner, ok := s.owner("created_by_kind", "created_by_name"); ok {
		owner.Controller = new(true)
		p.object.OwnerReferences = []metav1.OwnerReference{owner}
	}
	p.object.Spec.PriorityClassName = s.label("priority_class")
	p.object.Spec.HostNetwork = s.label("host_network") == "true"
}

// addNode adds a node.
func (s sample) addNode() {
	name, at := s.label("node"), seconds(s.value)
	if name == "" || at == 0 {
		return
	}
	s.lastNode = max(s.lastNode, at)
	n := s.nodes[name]
	if n == nil {
		n = &nodeState{object: &v1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		}}
		s.nodes[name] = n
	}
	n.lastSeen = max(n.lastSeen, at)
}

// onPod returns the setter of a series of pods. Pods that kube_pod_info does not have are ignored.
func onPod(set func(*podState, sample)) func(sample) {
	return func(s sample) {
		if p := s.pods[s.podID()]; p != nil {
			set(p, s)
		}
	}
}

// podTime returns the setter of a series with a time of pods.
func podTime(field func(*podState) *int64) func(sample) {
	return onPod(func(p *podState, s sample) { *field(p) = max(*field(p), seconds(s.value)) })
}

// setFinished sets the first time at which a pod was exported as finished.
func setFinished(p *podState, s sample) { p.ended = earliest(p.ended, seconds(s.value)) }

// setFirst sets the first times at which a pod was exported, and was exported with a node.
func setFirst(p *podState, s sample) {
	p.firstSeen = earliest(p.firstSeen, seconds(s.value))
	if s.label("node") != "" {
		p.firstBound = earliest(p.firstBound, seconds(s.value))
	}
}

// earliest returns the first of times that is known, 0 if none is.
func earliest(times ...int64) (first int64) {
	for _, at := range times {
		if at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

func (s sample) addReplicaSetOwner() {
	if owner, ok := s.owner("owner_kind", "owner_name"); ok {
		s.replicaSets[s.label("namespace")+"/"+s.label("replicaset")] = owner
	}
}

func addToleration(p *podState, s sample) {
	t := v1.Toleration{
		Key: s.label("key"), Operator: v1.TolerationOperator(s.label("operator")), Value: s.label("value"),
		Effect: v1.TaintEffect(s.label("effect")),
	}
	if text := s.label("toleration_seconds"); len(text) < 20 {
		if quantity, err := resource.ParseQuantity(text); err == nil {
			t.TolerationSeconds = new(quantity.Value())
		}
	}
	p.object.Spec.Tolerations = append(p.object.Spec.Tolerations, t)
}

// onContainer and onInitContainer return the setter of a series of containers.
func onContainer(set func(*v1.Container, sample)) func(sample) {
	return onPod(func(p *podState, s sample) { s.setContainer(&p.object.Spec.Containers, set) })
}

func onInitContainer(set func(*v1.Container, sample)) func(sample) {
	return onPod(func(p *podState, s sample) { s.setContainer(&p.object.Spec.InitContainers, set) })
}

// setContainer sets fields of the container of a series, which it adds to the containers unless they have it.
func (s sample) setContainer(containers *[]v1.Container, set func(*v1.Container, sample)) {
	name := s.label("container")
	if name == "" {
		return
	}
	i := slices.IndexFunc(*containers, func(c v1.Container) bool { return c.Name == name })
	if i < 0 {
		i = len(*containers)
		*containers = append(*containers, v1.Container{Name: name})
	}
	set(&(*containers)[i], s)
}

func setImage(c *v1.Container, s sample) { c.Image = cmp.Or(s.label("image_spec"), s.label("image")) }

// setInitContainer sets the image, and that an init container is a sidecar, whose requests add to those of its pod.
func setInitContainer(c *v1.Container, s sample) {
	setImage(c, s)
	if s.label("restart_policy") == string(v1.ContainerRestartPolicyAlways) {
		c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	}
}

func setRequest(c *v1.Container, s sample) { s.setResource(&c.Resources.Requests) }
func setLimit(c *v1.Container, s sample)   { s.setResource(&c.Resources.Limits) }

// onObject returns the setter of a series of objects of a type, which the label with the name of the type names.
func onObject[T any, P interface {
	*T
	metav1.Object
	runtime.Object
}](set func(P, sample)) func(sample) {
	kind := reflect.TypeFor[T]().Name()
	label := strings.ToLower(kind)
	return func(s sample) {
		namespace, name := s.label("namespace"), s.label(label)
		if namespace == "" || name == "" {
			return
		}
		key := label + "s/" + namespace + "/" + name
		object, ok := s.objects[key].(P)
		if !ok {
			object = new(T)
			object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersions[kind], kind))
			object.SetNamespace(namespace)
			object.SetName(name)
			s.objects[key] = object
		}
		set(object, s)
	}
}

func setScaled(h *autoscalingv2.HorizontalPodAutoscaler, s sample) {
	h.Spec.ScaleTargetRef.Kind, h.Spec.ScaleTargetRef.Name = s.label("scaletargetref_kind"), s.label("scaletargetref_name")
}

func setMinimum(h *autoscalingv2.HorizontalPodAutoscaler, s sample) {
	h.Spec.MinReplicas = new(int32(s.value))
}

func setMaximum(h *autoscalingv2.HorizontalPodAutoscaler, s sample) {
	h.Spec.MaxReplicas = int32(s.value)
}

// addTarget adds a target utilization. The type of its metric is unknown: Resource or ContainerResource.
func addTarget(h *autoscalingv2.HorizontalPodAutoscaler, s sample) {
	if s.label("metric_target_type") == "utilization" {
		h.Spec.Metrics = append(h.Spec.Metrics, autoscalingv2.MetricSpec{Resource: &autoscalingv2.ResourceMetricSource{
			Name:   v1.ResourceName(s.label("metric_name")),
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(s.value))},
		}})
	}
}

// addLimit adds an amount as a limit of its own: limits of the same type apply together.
func addLimit(l *v1.LimitRange, s sample) {
	item := v1.LimitRangeItem{Type: v1.LimitType(s.label("type"))}
	list := map[string]*v1.ResourceList{
		"min": &item.Min, "max": &item.Max, "maxLimitRequestRatio": &item.MaxLimitRequestRatio,
	}[s.label("constraint")]
	if list != nil {
		setAmount(list, v1.ResourceName(s.label("resource")), s.value)
		l.Spec.Limits = append(l.Spec.Limits, item)
	}
}

// addQuota adds an amount of the status of a quota.
func addQuota(q *v1.ResourceQuota, s sample) {
	list := &q.Status.Hard
	if s.label("type") == "used" {
		list = &q.Status.Used
	}
	setAmount(list, v1.ResourceName(s.label("resource")), s.value)
}

// setResource sets the amount of the resource of a series.
func (s sample) setResource(list *v1.ResourceList) {
	setAmount(list, resourceName(s.label("resource")), s.value)
}

// setAmount sets an amount of a resource. CPU is in cores. Values that are no amounts are ignored.
func setAmount(list *v1.ResourceList, name v1.ResourceName, value float64) {
	if name == "" || !(value >= 0 && value < 1e15) {
		return
	}
	if *list == nil {
		*list = v1.ResourceList{}
	}
	format := resource.DecimalSI
	if strings.Contains(string(name), "memory") || strings.Contains(string(name), "storage") ||
		strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
		format = resource.BinarySI
	}
	(*list)[name] = *resource.NewMilliQuantity(int64(math.Round(value*1000)), format)
}

// onNode returns the setter of a series of nodes. Nodes that kube_node_info does not have are ignored.
func onNode(set func(*nodeState, sample)) func(sample) {
	return func(s sample) {
		if n := s.nodes[s.label("node")]; n != nil {
			set(n, s)
		}
	}
}

func setNodeLabels(n *nodeState, s sample) { n.object.Labels = s.prefixed("label_") }

// addNodeRole adds a role that the node had when it was last exported.
func addNodeRole(n *nodeState, s sample) {
	if role := s.label("role"); role != "" && seconds(s.value) >= n.lastSeen {
		n.object.Labels["node-role.kubernetes.io/"+role] = ""
	}
}

// conditionTaints is the prefix of the taints that Kubernetes adds while a node is not ready, under pressure or cordoned.
// They are not recorded.
const conditionTaints = "node.kubernetes.io/"

// addTaint adds a taint that the node had when it was last exported.
func addTaint(n *nodeState, s sample) {
	key := s.label("key")
	if seconds(s.value) >= n.lastSeen && !strings.HasPrefix(key, conditionTaints) {
		n.object.Spec.Taints = append(n.object.Spec.Taints, v1.Taint{
			Key: key, Value: s.label("value"), Effect: v1.TaintEffect(s.label("effect")),
		})
	}
}
