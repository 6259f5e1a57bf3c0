package slack

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	algo "github.com/plimsoll-k8s/plimsoll/internal/algo/slack"
)

// Loop is the slack of one policy inside an autoscaler's loop. Every iteration
// calls Next and appends what it returns to the pods that wait; the ones with a
// node stay where the autoscaler had put them. It is not safe for concurrent
// use.
type Loop struct {
	policy    *v1alpha1.ResourceSlack
	wanted    algo.Policy
	planner   *algo.Planner
	namespace string
}

// NewLoop returns the loop of a policy. Placeholders seem to be in the
// namespace. An error is one of the policy.
func NewLoop(policy *v1alpha1.ResourceSlack, namespace string) (*Loop, error) {
	policy = policy.DeepCopy()
	policy.Spec.Default()
	wanted, err := policyOf(policy)
	if err != nil {
		return nil, err
	}
	return &Loop{policy: policy, wanted: wanted, planner: algo.NewPlanner(), namespace: namespace}, nil
}

// Next returns the placeholders of an iteration, and the plan they come from.
// placed are those of the last iteration with spec.nodeName set to the node
// that the autoscaler had put them on, if any. Those whose node is gone, or no
// longer has room for them beside its real pods, have no node any more; so have
// new ones. The others stay: same name, UID and node. Placeholders beyond those
// wanted go from the highest index down. A node should be of one policy's pool:
// the placeholders of others are not reckoned with.
func (l *Loop) Next(nodes []*v1.Node, pods []*v1.Pod, placed []*v1.Pod, now time.Time) ([]*v1.Pod, Plan) {
	ledger := algo.NewLedger()
	free := make(map[string]algo.Amounts, len(nodes))
	slots := make(map[string]int64, len(nodes))
	for _, node := range nodes {
		observed := observeNode(node, l.policy.Spec.Pool, now)
		ledger.SetNode(node.Name, observed)
		if observed.InPool && observed.Usable {
			free[node.Name] = observed.Allocatable
			slots[node.Name] = node.Status.Allocatable.Pods().Value()
		}
	}
	for _, pod := range pods {
		observed := observePod(pod)
		ledger.SetPod(pod.Namespace+"/"+pod.Name, observed)
		if room, ok := free[observed.Node]; ok {
			free[observed.Node] = room.Minus(observed.Requests)
			slots[observed.Node]--
		}
	}
	plan := planOf(l.policy.Name, l.planner.Next(ledger.Pool(), l.wanted, now.Unix()))
	out := l.placeholders(plan)
	at := make(map[string]string, len(placed))
	for _, pod := range placed {
		at[pod.Name] = pod.Spec.NodeName
	}
	// In the order of the plan: where real pods have left room for some only, the
	// first ones stay.
	for _, pod := range out {
		node := at[pod.Name]
		room, ok := free[node]
		requests := requestsOf(pod)
		if node == "" || !ok || slots[node] < 1 || !requests.FitsIn(room) {
			continue
		}
		pod.Spec.NodeName = node
		free[node] = room.Minus(requests)
		slots[node]--
	}
	return out, plan
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

// placeholders returns the pods of a plan, without nodes.
func (l *Loop) placeholders(plan Plan) []*v1.Pod {
	var out []*v1.Pod
	for _, group := range plan.Groups {
		for i := range group.Count {
			out = append(out, pod(l.policy, group, i, l.namespace))
		}
	}
	return out
}
