package slack

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// standInInterval is the interval of the passes of the stand-in.
	standInInterval = 200 * time.Millisecond
	// standInIdleTime is how long a node must be idle before it is removed.
	standInIdleTime = time.Second
	// standInMaxNodes is the largest number of nodes. It bounds what a user can make it create.
	standInMaxNodes = 100
)

// standIn is a simple autoscaler. It adds nodes of one shape for the unschedulable pods and for the
// placeholders of all buffers, packed first-fit by requests, and respects node selectors only.
// --autoscaler karpenter runs a real autoscaler.
type standIn struct {
	client client.Client
	// booting are the nodes that are not created yet, in the order of their ready times.
	booting []bootingNode
	// added is the number of nodes added so far.
	added int
	// idleSince is the time since which a node has been idle.
	idleSince map[string]time.Time
}

// bootingNode is a node that will be created at its ready time.
type bootingNode struct {
	name  string
	ready time.Time
}

// run runs passes until ctx ends.
func (s *standIn) run(ctx context.Context) {
	s.idleSince = map[string]time.Time{}
	ticker := time.NewTicker(standInInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := s.pass(ctx, now); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "The pass of the stand-in autoscaler failed and will be retried")
			}
		}
	}
}

// pass observes the cluster once and adds or removes nodes.
func (s *standIn) pass(ctx context.Context, now time.Time) error {
	if err := s.boot(ctx, now); err != nil {
		return err
	}
	nodes, waiting, err := s.observe(ctx)
	if err != nil {
		return err
	}
	placeholders, err := s.placeholders(ctx, now)
	if err != nil {
		return err
	}
	var machines []machine
	for _, n := range nodes {
		if !n.Spec.Unschedulable {
			machines = append(machines, n.machine)
		}
	}
	shape := amountsOf(demo.Node{CPU: nodeCPU, Memory: nodeMemory}.Object().Status.Allocatable)
	for _, b := range s.booting {
		machines = append(machines, machine{name: b.name, free: shape})
	}
	result := pack(machines, shape, append(waiting, placeholders...))
	for range min(result.added, max(0, standInMaxNodes-len(nodes)-len(s.booting))) {
		s.added++
		s.booting = append(s.booting, bootingNode{fmt.Sprintf("general-%d", s.added), now.Add(nodeBootTime)})
	}
	return s.retire(ctx, nodes, result.idle, now)
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

// observedNode is a node and its free amounts.
type observedNode struct {
	*v1.Node
	machine
}

// observe returns the nodes of the pool, oldest first, and the requests of the unschedulable pods.
func (s *standIn) observe(ctx context.Context) (nodes []*observedNode, waiting []amounts, err error) {
	var nodeList v1.NodeList
	var podList v1.PodList
	if err := errors.Join(s.client.List(ctx, &nodeList, client.MatchingLabels(poolLabels)), s.client.List(ctx, &podList)); err != nil {
		return nil, nil, err
	}
	byName := map[string]*observedNode{}
	for i := range nodeList.Items {
		node := &nodeList.Items[i]
		n := &observedNode{node, machine{name: node.Name, free: amountsOf(node.Status.Allocatable)}}
		nodes, byName[node.Name] = append(nodes, n), n
	}
	slices.SortFunc(nodes, func(a, b *observedNode) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range podList.Items {
		pod := &podList.Items[i]
		if facts.IsFinished(pod) {
			continue
		}
		if n := byName[pod.Spec.NodeName]; n != nil {
			n.free, n.hasPods = n.free.minus(requestsOf(pod)), true
		} else if demo.IsUnschedulable(pod) && selectsPool(&pod.Spec) {
			waiting = append(waiting, requestsOf(pod))
		}
	}
	return nodes, waiting, nil
}

// placeholders returns the requests of the placeholders of all buffers. It acknowledges each buffer
// in its status, as autoscalers do.
func (s *standIn) placeholders(ctx context.Context, now time.Time) ([]amounts, error) {
	var buffers unstructured.UnstructuredList
	buffers.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := s.client.List(ctx, &buffers); err != nil {
		return nil, err
	}
	var out []amounts
	for i := range buffers.Items {
		b, err := readBuffer(&buffers.Items[i])
		if err != nil {
			return nil, err
		}
		var template v1.PodTemplate
		err = s.client.Get(ctx, client.ObjectKey{Namespace: b.object.GetNamespace(), Name: b.template}, &template)
		if apierrors.IsNotFound(err) {
			continue // the buffer is created before or deleted after its template
		}
		if err != nil {
			return nil, err
		}
		if selectsPool(&template.Template.Spec) {
			request := requestsOf(&v1.Pod{Spec: template.Template.Spec})
			for range min(b.replicas, standInMaxNodes*nodePods) {
				out = append(out, request)
			}
		}
		if err := b.acknowledge(ctx, s.client, now); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// retire cordons the nodes that have been idle for long enough and deletes them in the next pass. A
// cordoned node to which a pod has been bound in the meantime is uncordoned.
func (s *standIn) retire(ctx context.Context, nodes []*observedNode, idle []string, now time.Time) error {
	for _, n := range nodes {
		since, isIdle := s.idleSince[n.Name]
		switch {
		case n.Spec.Unschedulable && n.hasPods:
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
		case !isIdle:
			s.idleSince[n.Name] = now
		case now.Sub(since) >= standInIdleTime:
			if err := s.setUnschedulable(ctx, n.Node, true); err != nil {
				return err
			}
		}
	}
	return nil
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

// requestsOf returns the requests of a pod.
func requestsOf(pod *v1.Pod) amounts {
	p := noderes.NewPod(pod)
	return amounts{p.Get(noderes.CPU).Request, p.Get(noderes.Memory).Request, 1}
}

// amountsOf returns the resources of a node.
func amountsOf(list v1.ResourceList) amounts {
	return amounts{noderes.CPU.Amount(list[v1.ResourceCPU]), noderes.Memory.Amount(list[v1.ResourceMemory]), list.Pods().Value()}
}
