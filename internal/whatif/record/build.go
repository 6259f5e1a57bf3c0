package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerLabel is the label that selects the pods of a ReplicaSet or StatefulSet in a recording: the selectors are not
// exported. Its value is the name of the owner.
const OwnerLabel = "plimsoll.dev/owner"

// systemPriorities are the values of the priority classes that every cluster has.
var systemPriorities = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

// apiVersions are the versions of the owners of pods.
var apiVersions = map[string]string{
	"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1", "Job": "batch/v1",
	"CronJob": "batch/v1", "ReplicationController": "v1", "Node": "v1", "Pod": "v1",
}

// ownerLabel returns the value of OwnerLabel for a name, which may be too long for a label.
func ownerLabel(name string) string {
	const longest, kept = 63, 40
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:kept] + "-" + hex.EncodeToString(sum[:8])
}

// controller returns the controller of a pod, and false if it has none.
func (p *seenPod) controller() (owner, bool) {
	for _, o := range p.owners {
		if o.controller {
			return o, true
		}
	}
	known := p.createdBy.kind != "" && p.createdBy.kind != "<none>" && p.createdBy.name != ""
	return p.createdBy, known && len(p.owners) == 0
}

// hasSelector reports whether an owner selects its pods by labels, which kube-scheduler uses to spread them.
func hasSelector(kind string) bool { return kind == "ReplicaSet" || kind == "StatefulSet" }

// reference returns the reference to an owner.
func reference(o owner) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: cmp.Or(apiVersions[o.kind], "unknown/v1"), Kind: o.kind, Name: o.name}
	if o.controller {
		ref.Controller = &o.controller
	}
	return ref
}

// object returns the pod. taints are the taints of its node: the pod tolerates them if tolerations are not exported.
func (p *seenPod) object(tolerationsExported bool, taints []v1.Taint) *v1.Pod {
	pod := &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.namespace, Name: p.name, UID: types.UID(p.uid), Labels: maps.Clone(p.labels),
		},
		Spec: v1.PodSpec{
			SchedulerName: p.scheduler, RestartPolicy: v1.RestartPolicy(p.restartPolicy), HostNetwork: p.hostNetwork,
			PriorityClassName: p.priorityClass, NodeSelector: p.selectors, Overhead: p.overhead,
			Containers: sorted(p.containers), InitContainers: sorted(p.initContainers),
		},
	}
	if p.created != 0 {
		pod.CreationTimestamp = metav1.NewTime(time.Unix(p.created, 0).UTC())
	}
	if priority, ok := systemPriorities[p.priorityClass]; ok {
		pod.Spec.Priority = &priority
	}
	p.setOwners(pod)
	pod.Spec.Tolerations = p.tolerationsOn(tolerationsExported, taints)
	return pod
}

// setOwners sets the owners, the label that selects the pod, and the node of a pod of a DaemonSet, which its controller sets.
func (p *seenPod) setOwners(pod *v1.Pod) {
	controller, controlled := p.controller()
	owners := slices.Clone(p.owners)
	if len(owners) == 0 && controlled {
		owners = []owner{controller}
	}
	slices.SortFunc(owners, func(a, b owner) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	for _, o := range owners {
		pod.OwnerReferences = append(pod.OwnerReferences, reference(o))
	}
	if controlled && hasSelector(controller.kind) {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[OwnerLabel] = ownerLabel(controller.name)
	}
	if controlled && controller.kind == "DaemonSet" && p.node != "" {
		field := v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{p.node}}
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{field}}},
			},
		}}
	}
}

// tolerationsOn returns the tolerations of the pod. If they are not exported, it tolerates the taints of its node.
func (p *seenPod) tolerationsOn(tolerationsExported bool, taints []v1.Taint) []v1.Toleration {
	out := slices.Clone(p.tolerations)
	if !tolerationsExported {
		for _, taint := range taints {
			if taint.Effect != v1.TaintEffectPreferNoSchedule {
				out = append(out, v1.Toleration{Key: taint.Key, Operator: v1.TolerationOpExists, Effect: taint.Effect})
			}
		}
	}
	slices.SortFunc(out, func(a, b v1.Toleration) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(string(a.Effect), string(b.Effect)),
			strings.Compare(string(a.Operator), string(b.Operator)), strings.Compare(a.Value, b.Value))
	})
	return slices.CompactFunc(out, func(a, b v1.Toleration) bool { return a.MatchToleration(&b) })
}

// sorted returns containers in the order of their names: their order is not exported.
func sorted(containers map[string]*v1.Container) []v1.Container {
	var out []v1.Container
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		out = append(out, *containers[name])
	}
	return out
}

// object returns the node.
func (n *seenNode) object() *v1.Node {
	node := &v1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: maps.Clone(n.labels)},
		Spec:       v1.NodeSpec{Unschedulable: n.unschedulable, Taints: slices.Clone(n.taints)},
		Status:     v1.NodeStatus{Allocatable: n.allocatable, Capacity: n.capacity},
	}
	if n.created != 0 {
		node.CreationTimestamp = metav1.NewTime(time.Unix(n.created, 0).UTC())
	}
	if len(n.allocatable) == 0 {
		node.Status.Allocatable = n.capacity
	}
	if node.Labels[v1.LabelHostname] == "" {
		node.Labels[v1.LabelHostname] = n.name
	}
	slices.SortFunc(node.Spec.Taints, func(a, b v1.Taint) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value), strings.Compare(string(a.Effect), string(b.Effect)))
	})
	node.Spec.Taints = slices.Compact(node.Spec.Taints)
	return node
}

// workload returns the ReplicaSet or StatefulSet that owns pods, with a selector for OwnerLabel.
func workload(namespace string, o, parent owner) map[string]any {
	metadata := map[string]any{"namespace": namespace, "name": o.name}
	if parent.name != "" {
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": cmp.Or(apiVersions[parent.kind], "unknown/v1"), "kind": parent.kind, "name": parent.name, "controller": true,
		}}
	}
	labels := map[string]any{OwnerLabel: ownerLabel(o.name)}
	return map[string]any{
		"apiVersion": apiVersions[o.kind], "kind": o.kind, "metadata": metadata,
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}},
		},
	}
}
