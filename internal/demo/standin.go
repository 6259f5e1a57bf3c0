package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// The pace of the stand-in.
const (
	standInTick = 200 * time.Millisecond
	// standInQuiet is how long nobody must want a node before it is taken away.
	standInQuiet = time.Second
)

// standIn is a built-in stand-in for an autoscaler: one shape of nodes, packed
// first-fit with the pods that do not fit and the placeholders of all buffers.
// It knows requests and node selectors, and nothing else that a real one knows;
// --autoscaler karpenter runs a real one.
type standIn struct {
	client client.Client
	// booting are nodes that come, with the time at which they do.
	booting []bootingNode
	made    int
	// idleSince is since when nobody wants a node.
	idleSince map[string]time.Time
}

type bootingNode struct {
	name  string
	ready time.Time
}

// run works until ctx ends.
func (s *standIn) run(ctx context.Context) {
	s.idleSince = map[string]time.Time{}
	ticker := time.NewTicker(standInTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := s.step(ctx, now); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "The stand-in for an autoscaler tries again")
			}
		}
	}
}

// step looks at the cluster once and does what is due.
func (s *standIn) step(ctx context.Context, now time.Time) error {
	if err := s.boot(ctx, now); err != nil {
		return err
	}
	nodes, waiting, err := s.observe(ctx)
	if err != nil {
		return err
	}
	placeholders, err := s.placeholders(ctx)
	if err != nil {
		return err
	}
	var machines []machine
	for _, n := range nodes {
		if !n.Spec.Unschedulable {
			machines = append(machines, n.machine)
		}
	}
	shape := roomOf(Node{CPU: nodeCPU, Memory: nodeMemory}.object().Status.Allocatable)
	for _, b := range s.booting {
		machines = append(machines, machine{name: b.name, free: shape})
	}
	result := pack(machines, shape, append(waiting, placeholders...))
	for range result.more {
		s.made++
		s.booting = append(s.booting, bootingNode{fmt.Sprintf("general-%d", s.made), now.Add(nodeBootTime)})
	}
	return s.retire(ctx, nodes, result.idle, now)
}

// boot creates the nodes that have booted.
func (s *standIn) boot(ctx context.Context, now time.Time) error {
	for len(s.booting) > 0 && !now.Before(s.booting[0].ready) {
		node := Node{Name: s.booting[0].name, CPU: nodeCPU, Memory: nodeMemory}.object()
		maps.Copy(node.Labels, poolLabels)
		if err := s.client.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		s.booting = s.booting[1:]
	}
	return nil
}

// observed is a node and what is left of it.
type observed struct {
	*v1.Node
	machine
}

// observe returns the nodes of the pool, the oldest first, and what the pods
// want that the scheduler has found no room for.
func (s *standIn) observe(ctx context.Context) (nodes []*observed, waiting []room, err error) {
	var nodeList v1.NodeList
	var podList v1.PodList
	if err := errors.Join(s.client.List(ctx, &nodeList, client.MatchingLabels(poolLabels)), s.client.List(ctx, &podList)); err != nil {
		return nil, nil, err
	}
	byName := map[string]*observed{}
	for i := range nodeList.Items {
		node := &nodeList.Items[i]
		n := &observed{node, machine{name: node.Name, free: roomOf(node.Status.Allocatable)}}
		nodes, byName[node.Name] = append(nodes, n), n
	}
	slices.SortFunc(nodes, func(a, b *observed) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range podList.Items {
		pod := &podList.Items[i]
		if facts.IsFinished(pod) {
			continue
		}
		if n := byName[pod.Spec.NodeName]; n != nil {
			n.free, n.busy = n.free.minus(taken(pod)), true
		} else if unschedulable(pod) && inPool(&pod.Spec) {
			waiting = append(waiting, taken(pod))
		}
	}
	return nodes, waiting, nil
}

// placeholders returns what the placeholders of all buffers want.
func (s *standIn) placeholders(ctx context.Context) ([]room, error) {
	var buffers unstructured.UnstructuredList
	buffers.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := s.client.List(ctx, &buffers); err != nil {
		return nil, err
	}
	var out []room
	for _, buffer := range buffers.Items {
		name, _, nameErr := unstructured.NestedString(buffer.Object, "spec", "podTemplateRef", "name")
		replicas, _, replicasErr := unstructured.NestedInt64(buffer.Object, "spec", "replicas")
		if err := errors.Join(nameErr, replicasErr); err != nil {
			return nil, err
		}
		var template v1.PodTemplate
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: buffer.GetNamespace(), Name: name}, &template); err != nil {
			return nil, err
		}
		if !inPool(&template.Template.Spec) {
			continue
		}
		for range replicas {
			out = append(out, taken(&v1.Pod{Spec: template.Template.Spec}))
		}
	}
	return out, nil
}

// retire cordons the nodes that nobody has wanted for a while, and deletes them
// when they are looked at again; a pod that came meanwhile keeps its node.
func (s *standIn) retire(ctx context.Context, nodes []*observed, idle []string, now time.Time) error {
	for _, n := range nodes {
		since, known := s.idleSince[n.Name]
		switch {
		case n.Spec.Unschedulable && n.busy:
			delete(s.idleSince, n.Name)
			if err := s.setUnschedulable(ctx, n.Node, false); err != nil {
				return err
			}
		case n.Spec.Unschedulable:
			delete(s.idleSince, n.Name)
			if err := s.client.Delete(ctx, n.Node); client.IgnoreNotFound(err) != nil {
				return err
			}
		case !slices.Contains(idle, n.Name):
			delete(s.idleSince, n.Name)
		case !known:
			s.idleSince[n.Name] = now
		case now.Sub(since) >= standInQuiet:
			if err := s.setUnschedulable(ctx, n.Node, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *standIn) setUnschedulable(ctx context.Context, node *v1.Node, unschedulable bool) error {
	changed := node.DeepCopy()
	changed.Spec.Unschedulable = unschedulable
	return s.client.Patch(ctx, changed, client.MergeFrom(node))
}

// unschedulable reports whether the scheduler has found no room for a pod.
func unschedulable(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable
	})
}

// inPool reports whether a pod may run on the pool's nodes.
func inPool(spec *v1.PodSpec) bool {
	return labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(poolLabels))
}

// taken returns what a pod takes of a node.
func taken(pod *v1.Pod) room {
	p := noderes.NewPod(pod)
	return room{p.Get(noderes.CPU).Request, p.Get(noderes.Memory).Request, 1}
}

// roomOf returns what a node has.
func roomOf(list v1.ResourceList) room {
	return room{noderes.CPU.Amount(list[v1.ResourceCPU]), noderes.Memory.Amount(list[v1.ResourceMemory]), list.Pods().Value()}
}
