package slack

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// Shape and boot time of the nodes that the stand-in adds. The boot time is much shorter than in a cloud, so that the demo does not wait.
const (
	nodeCPU      = "4"
	nodeMemory   = "16Gi"
	nodePods     = 110
	nodeBootTime = 3 * time.Second
)

// poolLabels are the labels of these nodes.
var poolLabels = map[string]string{"pool": "general"}

// buffers is the CRD that the stand-in reads.
//
//go:embed capacitybuffers.yaml
var buffers []byte

const (
	// standInInterval is the interval of the passes of the stand-in.
	standInInterval = 200 * time.Millisecond
	// standInIdleSeconds is how long a node must be unneeded before it is removed.
	standInIdleSeconds = 2
	// standInUtilization is the utilization below which a node can be unneeded.
	standInUtilization = 0.5
	// standInMaxNodes is the largest number of nodes, also if a user requests more.
	standInMaxNodes = 100
)

// standIn is an autoscaler with the model of the what-if, package autoscaler. It adds nodes of one
// shape for the unschedulable pods and for the placeholders of all buffers, and respects node
// selectors only.
type standIn struct {
	client client.Client
	// booting are the nodes that are not created yet, in the order of their ready times.
	booting []bootingNode
	// added is the number of nodes added so far.
	added     int
	scaleDown autoscaler.ScaleDown
}

// bootingNode is a node that will be created at its ready time.
type bootingNode struct {
	name  string
	ready time.Time
}

// run runs a pass. The next pass is its retry.
func (s *standIn) run(ctx context.Context) {
	if err := s.pass(ctx, time.Now()); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "The pass of the stand-in autoscaler failed and will be retried")
	}
}

// pass observes the cluster once and adds or removes nodes.
func (s *standIn) pass(ctx context.Context, now time.Time) error {
	if err := s.boot(ctx, now); err != nil {
		return err
	}
	nodes, pods, err := s.observe(ctx)
	if err != nil {
		return err
	}
	placeholders, err := s.placeholders(ctx, now)
	if err != nil {
		return err
	}
	in := autoscaler.ScaleDownInput{
		Pods: append(pods, placeholders...), Removable: []int{len(nodes)},
		Threshold: standInUtilization, UnneededSeconds: standInIdleSeconds,
	}
	objects := map[string]*v1.Node{}
	for _, n := range nodes {
		if n.object.Spec.Unschedulable {
			if err := s.retire(ctx, n); err != nil {
				return err
			}
			continue
		}
		objects[n.Name], in.Nodes = n.object, append(in.Nodes, n.PackedNode)
	}
	unplaced := place(ctx, &in)
	group := autoscaler.Group{Allocatable: shape, Headroom: standInMaxNodes - len(nodes) - len(s.booting)}
	plan := autoscaler.ScaleUp(ctx, unplaced, make([]int, len(s.booting)), []autoscaler.Group{group}, autoscaler.NoConstraints{})
	for range plan.Nodes[0] {
		s.added++
		s.booting = append(s.booting, bootingNode{fmt.Sprintf("general-%d", s.added), now.Add(nodeBootTime)})
	}
	for _, i := range s.scaleDown.Next(ctx, now.Unix(), in, autoscaler.NoConstraints{}) {
		if err := s.setUnschedulable(ctx, objects[in.Nodes[i].Name], true); err != nil {
			return err
		}
	}
	return nil
}

// boot creates the nodes that have booted.
func (s *standIn) boot(ctx context.Context, now time.Time) error {
	for len(s.booting) > 0 && !now.Before(s.booting[0].ready) {
		node := demo.Node{Name: s.booting[0].name, CPU: nodeCPU, Memory: nodeMemory}.Object()
		maps.Copy(node.Labels, poolLabels)
		if err := s.client.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		s.booting = s.booting[1:]
	}
	return nil
}

// poolNode is a node of the pool. It is fixed if it has pods.
type poolNode struct {
	object *v1.Node
	autoscaler.PackedNode
}

// observe returns the nodes of the pool and the unschedulable pods. Nodes with pods come first, so
// that the others become unneeded, then older ones.
func (s *standIn) observe(ctx context.Context) (nodes []*poolNode, pods []autoscaler.Item, err error) {
	var nodeList v1.NodeList
	var podList v1.PodList
	if err := errors.Join(s.client.List(ctx, &nodeList, client.MatchingLabels(poolLabels)), s.client.List(ctx, &podList)); err != nil {
		return nil, nil, err
	}
	byName := map[string]*poolNode{}
	for i := range nodeList.Items {
		node := &nodeList.Items[i]
		n := &poolNode{node, autoscaler.PackedNode{Name: node.Name, Free: allocatable(node)}}
		nodes, byName[node.Name] = append(nodes, n), n
	}
	for i := range podList.Items {
		pod := &podList.Items[i]
		if n := byName[pod.Spec.NodeName]; n != nil && !resources.IsFinished(pod) {
			n.Free, n.Fixed = n.Free.Minus(recording.PodAmounts(pod)), true
		} else if demo.IsUnschedulable(pod) && selectsPool(&pod.Spec) {
			pods = append(pods, autoscaler.Item{Requests: recording.PodAmounts(pod), Class: 1})
		}
	}
	slices.SortFunc(nodes, func(a, b *poolNode) int {
		switch {
		case a.Fixed == b.Fixed:
			return cmp.Or(a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		case a.Fixed:
			return -1
		}
		return 1
	})
	return nodes, pods, nil
}

// place assigns pods and placeholders to the nodes and returns the ones that do not fit. Nodes with
// pods must not be removed.
func place(ctx context.Context, in *autoscaler.ScaleDownInput) (unplaced []autoscaler.Item) {
	var free []resources.Amounts
	for i := range in.Nodes {
		free = append(free, in.Nodes[i].Free)
	}
	for i, node := range autoscaler.Place(ctx, in.Pods, free, autoscaler.NoConstraints{}) {
		if node < 0 {
			unplaced = append(unplaced, in.Pods[i])
			continue
		}
		n := &in.Nodes[node]
		n.Pods, n.Free = append(n.Pods, i), n.Free.Minus(in.Pods[i].Requests)
		n.Fixed = n.Fixed || !in.Pods[i].Placeholder
	}
	for i := range in.Nodes {
		in.Nodes[i].Utilization = autoscaler.Utilization(shape.Minus(in.Nodes[i].Free), shape)
	}
	return unplaced
}

// capacityBuffer has the fields of a CapacityBuffer that the stand-in reads and writes.
type capacityBuffer struct {
	Spec struct {
		PodTemplateRef v1.LocalObjectReference `json:"podTemplateRef"`
		Replicas       int64                   `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		Replicas   int64              `json:"replicas"`
	} `json:"status"`
}

// placeholders returns the placeholders of all buffers. It acknowledges each buffer in its status, as
// autoscalers do.
func (s *standIn) placeholders(ctx context.Context, now time.Time) ([]autoscaler.Item, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := s.client.List(ctx, &list); err != nil {
		return nil, err
	}
	var out []autoscaler.Item
	for i := range list.Items {
		var b capacityBuffer
		object := &list.Items[i]
		if err := resources.FromUnstructured(object.Object, &b); err != nil {
			return nil, err
		}
		var template v1.PodTemplate
		err := s.client.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: b.Spec.PodTemplateRef.Name}, &template)
		if apierrors.IsNotFound(err) {
			continue // the buffer is created before or deleted after its template
		}
		if err != nil {
			return nil, err
		}
		if pod := (&v1.Pod{Spec: template.Template.Spec}); selectsPool(&pod.Spec) {
			for range min(b.Spec.Replicas, standInMaxNodes*nodePods) {
				out = append(out, autoscaler.Item{Requests: recording.PodAmounts(pod), Class: 1, Placeholder: true})
			}
		}
		if err := s.acknowledge(ctx, object, b, now); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// acknowledge reports in the status of a buffer that it is valid and that its placeholders are
// included in the passes. It writes only changes.
func (s *standIn) acknowledge(ctx context.Context, object *unstructured.Unstructured, b capacityBuffer, now time.Time) error {
	changed := b.Status.Replicas != b.Spec.Replicas
	b.Status.Replicas = b.Spec.Replicas
	for _, kind := range []string{"ReadyForProvisioning", "Provisioning"} {
		changed = apimeta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "StandIn", Message: "the stand-in for an autoscaler includes the buffer",
			ObservedGeneration: object.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
		}) || changed
	}
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": b.Status})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(s.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)))
}

// retire deletes a cordoned node, or uncordons it if a pod has been bound to it in the meantime.
func (s *standIn) retire(ctx context.Context, n *poolNode) error {
	if n.Fixed {
		return s.setUnschedulable(ctx, n.object, false)
	}
	return client.IgnoreNotFound(s.client.Delete(ctx, n.object))
}

// setUnschedulable cordons or uncordons a node.
func (s *standIn) setUnschedulable(ctx context.Context, node *v1.Node, unschedulable bool) error {
	changed := node.DeepCopy()
	changed.Spec.Unschedulable = unschedulable
	return s.client.Patch(ctx, changed, client.MergeFrom(node))
}

// selectsPool reports whether the node selector of a pod matches the nodes of the pool.
func selectsPool(spec *v1.PodSpec) bool {
	return labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(poolLabels))
}

// shape is the capacity of the nodes that the stand-in adds.
var shape = allocatable(demo.Node{CPU: nodeCPU, Memory: nodeMemory}.Object())

// allocatable returns the amounts of a node.
func allocatable(node *v1.Node) resources.Amounts { return recording.Amounts(node.Status.Allocatable) }
