package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnerLabel is the label that selects the pods of a ReplicaSet or StatefulSet in a recording: the selectors are not
// exported. Its value is the name of the owner.
const OwnerLabel = "plimsoll.dev/owner"

// systemPriorities are the values of the priority classes that every cluster has.
var systemPriorities = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

// apiVersions are the versions of the owners of pods, and of what acts on requests.
var apiVersions = map[string]string{
	"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1", "Job": "batch/v1",
	"CronJob": "batch/v1", "ReplicationController": "v1", "Node": "v1", "Pod": "v1",
	"HorizontalPodAutoscaler": "autoscaling/v2", "LimitRange": "v1", "ResourceQuota": "v1",
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

// hasSelector reports whether an owner selects its pods by labels, which kube-scheduler uses to spread them.
func hasSelector(owner *metav1.OwnerReference) bool {
	return owner != nil && (owner.Kind == "ReplicaSet" || owner.Kind == "StatefulSet")
}

// completeObject completes the object of a pod after all series are read. taints are the taints of its node: the pod tolerates them
// if tolerations are not exported. Containers are ordered by name: their order is not exported.
func (p *podState) completeObject(tolerationsExported bool, taints []v1.Taint) {
	spec := &p.object.Spec
	if priority, ok := systemPriorities[spec.PriorityClassName]; ok {
		spec.Priority = &priority
	}
	for _, containers := range [][]v1.Container{spec.Containers, spec.InitContainers} {
		slices.SortFunc(containers, func(a, b v1.Container) int { return cmp.Compare(a.Name, b.Name) })
	}
	p.completeOwned()
	if !tolerationsExported {
		for _, taint := range taints {
			if taint.Effect != v1.TaintEffectPreferNoSchedule {
				spec.Tolerations = append(spec.Tolerations,
					v1.Toleration{Key: taint.Key, Operator: v1.TolerationOpExists, Effect: taint.Effect})
			}
		}
	}
	slices.SortFunc(spec.Tolerations, func(a, b v1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Operator, b.Operator),
			cmp.Compare(a.Value, b.Value))
	})
	spec.Tolerations = slices.CompactFunc(spec.Tolerations, func(a, b v1.Toleration) bool { return a.MatchToleration(&b) })
}

// completeOwned sets the label by which the owner of a pod selects it, and the node of a pod of a DaemonSet, which its controller sets.
func (p *podState) completeOwned() {
	pod := p.object
	controller := metav1.GetControllerOfNoCopy(pod)
	if hasSelector(controller) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, OwnerLabel, ownerLabel(controller.Name))
	}
	if controller != nil && controller.Kind == "DaemonSet" && p.node != "" {
		field := v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{p.node}}
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{field}}},
			},
		}}
	}
}

// completeObject completes the object of a node after all series are read.
func (n *nodeState) completeObject() {
	node := n.object
	node.CreationTimestamp = metav1.NewTime(time.Unix(n.created, 0).UTC())
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = node.Status.Capacity
	}
	node.Labels[v1.LabelHostname] = cmp.Or(node.Labels[v1.LabelHostname], node.Name)
	slices.SortFunc(node.Spec.Taints, func(a, b v1.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	node.Spec.Taints = slices.Compact(node.Spec.Taints)
}

// workload returns the ReplicaSet or StatefulSet that owns pods, with a selector for OwnerLabel, and its own owner if that has a name.
func workload(namespace string, o *metav1.OwnerReference, parent metav1.OwnerReference) map[string]any {
	metadata := map[string]any{"namespace": namespace, "name": o.Name}
	if parent.Name != "" {
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": parent.APIVersion, "kind": parent.Kind, "name": parent.Name, "controller": true,
		}}
	}
	labels := map[string]any{OwnerLabel: ownerLabel(o.Name)}
	return map[string]any{
		"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": metadata,
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}},
		},
	}
}
