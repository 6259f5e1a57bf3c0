package slack

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Loop computes the placeholders of one policy in each iteration of an autoscaler. The autoscaler
// calls Next and appends the placeholders without a node to its pending pods; placeholders with a node
// stay on it. It is not safe for concurrent use.
type Loop struct {
	tracker   *Tracker
	namespace string
	// pods are the pods of the last iteration by name, and by object, which most pods keep: a pointer is found in a fraction of the time.
	pods      map[types.NamespacedName]*observedPod
	objects   map[*v1.Pod]*observedPod
	iteration int
}

// observedPod is a pod in the iteration that observed it last. A pod that is the same object, with
// the same version, node and phase, is not read again.
type observedPod struct {
	pod           *v1.Pod
	version, node string
	phase         v1.PodPhase
	iteration     int
}

func (o *observedPod) isChanged(pod *v1.Pod) bool {
	return o.pod != pod || o.version != pod.ResourceVersion || o.node != nodeOf(pod) || o.phase != pod.Status.Phase
}

// NewLoop returns the loop of a policy. Placeholders of the rate are in the namespace, mirrors are in
// the namespace of their workload. It returns an error if the policy is invalid.
func NewLoop(policy *v1alpha1.ResourceSlack, namespace string) (*Loop, error) {
	tracker, err := NewTracker(policy)
	if err != nil {
		return nil, err
	}
	return &Loop{
		tracker: tracker, namespace: namespace, pods: map[types.NamespacedName]*observedPod{}, objects: map[*v1.Pod]*observedPod{},
	}, nil
}

// SetWorkloads sets the workloads that the policy mirrors. GoverningPolicy selects the policy of a
// workload.
func (l *Loop) SetWorkloads(workloads []Workload) { l.tracker.SetWorkloads(workloads) }

// Next returns the placeholders of an iteration, and their plan. Nodes and pods are all nodes and
// pods of the cluster. Placed are the placeholders of the last iteration, with spec.nodeName set to
// the node that the autoscaler put them on.
//
// A placeholder keeps its name, UID and node for as long as it is in the plan. It loses its node if
// the node is deleted, has no capacity left after its pods, or is no longer permitted by node
// selectors, taints or required anti-affinity. New placeholders have no node. Placeholders are
// removed from the highest index down. A node should be in the pool of one policy only: the
// placeholders of other policies are not subtracted from its capacity.
//
// Objects that are the same as in the last iteration, for example from an informer's cache, are not
// read again: of a pod that was modified in place without a new resource version, only changes of the
// node and phase are detected.
func (l *Loop) Next(nodes []*v1.Node, pods []*v1.Pod, placed []*v1.Pod, now time.Time) ([]*v1.Pod, Plan) {
	l.observe(nodes, pods, now)
	plan := l.tracker.Next(now)
	return l.placeholders(plan, placed, pods), plan
}

// observe passes the changes since the last iteration to the tracker.
func (l *Loop) observe(nodes []*v1.Node, pods []*v1.Pod, now time.Time) {
	l.iteration++
	existing := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		existing[node.Name] = true
		l.tracker.SetNode(node, now)
	}
	for name, a := range l.tracker.ledger.accounts {
		if a.node != nil && !existing[name] {
			l.tracker.DeleteNode(name)
		}
	}
	distinct := 0
	for _, pod := range pods {
		observed := l.objects[pod]
		if observed == nil {
			observed = l.observed(pod)
		}
		if observed.iteration != l.iteration {
			distinct++
		}
		if observed.iteration = l.iteration; observed.isChanged(pod) {
			observed.pod, observed.version, observed.node, observed.phase = pod, pod.ResourceVersion, nodeOf(pod), pod.Status.Phase
			l.tracker.SetPod(pod)
		}
	}
	if len(l.pods) == distinct {
		return // no pod was deleted
	}
	for key, observed := range l.pods {
		if observed.iteration != l.iteration {
			delete(l.pods, key)
			delete(l.objects, observed.pod)
			l.tracker.DeletePod(observed.pod)
		}
	}
}

// observed returns the pod with the name of an object, which becomes its object.
func (l *Loop) observed(pod *v1.Pod) *observedPod {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	observed := l.pods[key]
	if observed == nil {
		observed = &observedPod{}
		l.pods[key] = observed
	}
	delete(l.objects, observed.pod)
	l.objects[pod] = observed
	return observed
}

// placeholders returns the placeholders of a plan. Placed ones keep their node if possible.
func (l *Loop) placeholders(plan Plan, placed, pods []*v1.Pod) []*v1.Pod {
	before := make(map[string]string, len(placed))
	for _, pod := range placed {
		before[pod.Name] = pod.Spec.NodeName
	}
	capacity := l.capacity(plan, pods)
	nodes := capacity.byName()
	exclusions, _ := capacity.exclusionsOf(plan, pods) // mirrors with too many comparisons keep their node
	var out []*v1.Pod
	// In the order of the plan: the first placeholders keep their node if pods leave capacity for some
	// of them only.
	for i := range plan.Groups {
		group := &plan.Groups[i]
		d := capacity.demandOf(group, exclusions)
		for index := range group.Count {
			placeholder := placeholderPod(l.tracker.policy, *group, index, l.namespace)
			name := before[placeholder.Name]
			if node := nodes[name]; node != nil && node.Usable && node.count(&d) > 0 && d.Allowed(node) {
				node.assign(&d)
				placeholder.Spec.NodeName = name
			}
			out = append(out, placeholder)
		}
	}
	return out
}

// capacity returns the capacity for the placeholders of a plan. If they request resources beside CPU, memory and the devices of the
// pool, such as ephemeral storage, these count as devices, too.
func (l *Loop) capacity(plan Plan, pods []*v1.Pod) *Capacity {
	c, others := l.tracker.Capacity(), sets.New[string]()
	for _, group := range plan.Groups {
		for name := range group.Requests {
			others.Insert(string(name))
		}
	}
	others.Delete(string(v1.ResourceCPU), string(v1.ResourceMemory))
	others.Delete(c.devices...)
	if len(others) == 0 {
		return c
	}
	c.devices = slices.Concat(c.devices, sets.List(others))
	for i := range c.nodes {
		c.nodes[i].Free.Extended = amountsOf(c.nodes[i].node.Status.Allocatable, c.devices).Extended
	}
	nodes := c.byName()
	for _, pod := range pods {
		if node := nodes[nodeOf(pod)]; node != nil && isCounted(pod) {
			node.Free = node.Free.Minus(resources.Amounts{Extended: amountsOf(resources.Requests(pod), c.devices).Extended})
		}
	}
	return c
}
