package slack

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// Loop is the slack of one policy inside an autoscaler's loop. Every iteration
// calls Next and appends what it returns to the pods that wait; the ones with a
// node stay where the autoscaler had put them. It is not safe for concurrent
// use.
type Loop struct {
	tracker   *Tracker
	namespace string
	// pods are those of the last iteration.
	pods map[types.NamespacedName]*seen
	turn int
}

// seen is a pod as an iteration has seen it. A pod that is the same object, with
// the same version and node, is not read again.
type seen struct {
	pod           *v1.Pod
	version, node string
	phase         v1.PodPhase
	turn          int
}

func (s *seen) changed(pod *v1.Pod) bool {
	return s.pod != pod || s.version != pod.ResourceVersion || s.node != pod.Spec.NodeName || s.phase != pod.Status.Phase
}

// NewLoop returns the loop of a policy. Placeholders of the rate seem to be in
// the namespace, those of workloads in that of the workload. An error is one of
// the policy.
func NewLoop(policy *v1alpha1.ResourceSlack, namespace string) (*Loop, error) {
	tracker, err := NewTracker(policy)
	if err != nil {
		return nil, err
	}
	return &Loop{tracker: tracker, namespace: namespace, pods: map[types.NamespacedName]*seen{}}, nil
}

// SetWorkloads takes over which workloads the policy is to mirror; they are
// those that Governs gives it.
func (l *Loop) SetWorkloads(workloads []Workload) { l.tracker.SetWorkloads(workloads) }

// Next returns the placeholders of an iteration, and the plan they come from.
// placed are those of the last iteration with spec.nodeName set to the node
// that the autoscaler had put them on, if any. Those whose node is gone, or no
// longer has room for them beside its real pods, or may no longer have them
// (selectors, taints, a real pod that they must be apart from), have no node any
// more; so have new ones. The others stay: same name, UID and node. Placeholders
// beyond those wanted go from the highest index down. A node should be of one
// policy's pool: the placeholders of others are not reckoned with.
//
// Nodes and pods are all that there are. Objects that are the same as in the
// last iteration, as those of an informer's cache are, are not read again; a pod
// that was changed in place, without a new resource version, is not seen to have
// changed unless its node or phase has.
func (l *Loop) Next(nodes []*v1.Node, pods []*v1.Pod, placed []*v1.Pod, now time.Time) ([]*v1.Pod, Plan) {
	l.follow(nodes, pods, now)
	plan := l.tracker.Next(now)
	return l.keep(plan, placed, pods), plan
}

// follow tells the tracker what has changed since the last iteration.
func (l *Loop) follow(nodes []*v1.Node, pods []*v1.Pod, now time.Time) {
	l.turn++
	there := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		there[node.Name] = true
		l.tracker.SetNode(node, now)
	}
	for name := range l.tracker.nodes {
		if !there[name] {
			l.tracker.DeleteNode(name)
		}
	}
	distinct := 0
	for _, pod := range pods {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		was := l.pods[key]
		if was == nil {
			was = &seen{}
			l.pods[key] = was
		}
		if was.turn != l.turn {
			distinct++
		}
		if was.turn = l.turn; was.changed(pod) {
			was.pod, was.version, was.node, was.phase = pod, pod.ResourceVersion, pod.Spec.NodeName, pod.Status.Phase
			l.tracker.SetPod(pod)
		}
	}
	if len(l.pods) == distinct {
		return // each of them has been seen
	}
	for key, was := range l.pods {
		if was.turn != l.turn {
			delete(l.pods, key)
			l.tracker.DeletePod(was.pod)
		}
	}
}

// keep returns the placeholders of a plan. Those that were placed keep their
// node where they may.
func (l *Loop) keep(plan Plan, placed, pods []*v1.Pod) []*v1.Pod {
	at := make(map[string]string, len(placed))
	for _, pod := range placed {
		at[pod.Name] = pod.Spec.NodeName
	}
	seats := l.newSeats(pods)
	var out []*v1.Pod
	// In the order of the plan: where real pods have left room for some only, the
	// first ones stay.
	for i := range plan.Groups {
		group := &plan.Groups[i]
		keeps := seats.of(group)
		for index := range group.Count {
			placeholder := pod(l.tracker.policy, *group, index, l.namespace)
			if node := at[placeholder.Name]; node != "" && keeps(placeholder, node) {
				placeholder.Spec.NodeName = node
			}
			out = append(out, placeholder)
		}
	}
	return out
}

// PushedOut returns the names of those that had a node and have none, or
// another one, any more.
func PushedOut(before, after []*v1.Pod) []string {
	now := make(map[string]string, len(after))
	for _, pod := range after {
		now[pod.Name] = pod.Spec.NodeName
	}
	var names []string
	for _, pod := range before {
		if node, still := now[pod.Name]; still && pod.Spec.NodeName != "" && node != pod.Spec.NodeName {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}
