package slack

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	algo "github.com/plimsoll-k8s/plimsoll/internal/algo/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// Tracker follows the pool of one policy as nodes and pods come and go, told one
// change at a time, and plans for it. It is not safe for concurrent use.
type Tracker struct {
	policy    *v1alpha1.ResourceSlack
	wanted    algo.Policy
	ledger    *algo.Ledger
	planner   *algo.Planner
	nodes     map[string]*v1.Node
	workloads []Workload
	// mirrors are what is held for workloads, by the names of the groups.
	mirrors map[string]*mirror
}

// mirror is what is held for a workload.
type mirror struct {
	algo.Slowly
	// annotation that the workload had; a new one is to take effect at once.
	annotation string
}

// NewTracker returns a tracker of an empty pool. An error is one of the policy.
func NewTracker(policy *v1alpha1.ResourceSlack) (*Tracker, error) {
	t := &Tracker{ledger: algo.NewLedger(), planner: algo.NewPlanner(), nodes: map[string]*v1.Node{}, mirrors: map[string]*mirror{}}
	return t, t.SetPolicy(policy)
}

// SetPolicy takes a changed policy over. If its pool is another one, all nodes
// must be set again. After an error the policy is the one before.
func (t *Tracker) SetPolicy(policy *v1alpha1.ResourceSlack) error {
	policy = policy.DeepCopy()
	policy.Spec.Default()
	wanted, err := policyOf(policy)
	if err != nil {
		return err
	}
	t.policy, t.wanted = policy, wanted
	return nil
}

// Policy returns the policy, with its defaults.
func (t *Tracker) Policy() *v1alpha1.ResourceSlack { return t.policy }

// SetNode takes a node in, as it is at a time; it returns whether the node is of
// the pool.
func (t *Tracker) SetNode(node *v1.Node, now time.Time) bool {
	observed := observeNode(node, t.policy.Spec.Pool, now)
	t.ledger.SetNode(node.Name, observed)
	t.nodes[node.Name] = node
	return observed.InPool
}

// DeleteNode forgets a node.
func (t *Tracker) DeleteNode(name string) {
	t.ledger.DeleteNode(name)
	delete(t.nodes, name)
}

// SetPod takes a pod in.
func (t *Tracker) SetPod(pod *v1.Pod) { t.ledger.SetPod(facts.Name(pod), observePod(pod)) }

// DeletePod forgets a pod.
func (t *Tracker) DeletePod(pod *v1.Pod) { t.ledger.DeletePod(facts.Name(pod)) }

// SetWorkloads takes over which workloads the policy is to mirror; they are
// those that Governs gives it.
func (t *Tracker) SetWorkloads(workloads []Workload) { t.workloads = workloads }

// Resume makes the tracker go on from groups that are held already, such as by
// a controller before it was restarted. Groups that it would never have made
// itself are not among them.
func (t *Tracker) Resume(groups []Group) {
	var head []algo.Group
	var rest algo.Group
	for _, group := range groups {
		held := algo.Group{Size: amountsOf(group.Requests), Count: group.Count}
		switch group.Name {
		case t.policy.Name + rateSuffix:
			rest = held
		case t.policy.Name + headSuffix, t.policy.Name + headSuffix + "2":
			head = append(head, held)
		default:
			if !IsMirror(group.Name) {
				continue
			}
			m := &mirror{}
			m.Hold(group.Count)
			t.mirrors[group.Name] = m
		}
	}
	if len(head) > 0 || rest.Count > 0 {
		t.planner.Resume(t.wanted, head, rest)
	}
}

// Next returns the plan at a time.
func (t *Tracker) Next(now time.Time) Plan {
	plan := planOf(t.policy.Name, t.planner.Next(t.ledger.Pool(), t.wanted, now.Unix()))
	seen := make(map[string]bool, len(t.workloads))
	plan.addMirrors(t.policy, t.workloads, func(w Workload, wanted int64) int64 {
		name := w.groupName()
		seen[name] = true
		m := t.mirrors[name]
		if m == nil {
			m = &mirror{annotation: w.Slack}
			t.mirrors[name] = m
		}
		if m.annotation != w.Slack {
			if m.annotation != "" { // which is not known after Resume
				m.Hold(wanted)
			}
			m.annotation = w.Slack
		}
		return m.Next(wanted, now.Unix(), t.planner.CoolDown)
	})
	// What is not wanted any more has nothing to cool down.
	maps.DeleteFunc(t.mirrors, func(name string, _ *mirror) bool { return !seen[name] })
	return plan
}

// Free returns what the pool's usable nodes have beside their pods.
func (t *Tracker) Free() v1.ResourceList { return listOf(t.ledger.Pool().Free) }

// Room returns how many of a plan's placeholders have room on the nodes that
// there are now, at least: it looks at CPU, memory, pod slots, selectors and
// taints, and puts the placeholders in an order that is good, not always the
// best.
func (t *Tracker) Room(plan Plan) int64 {
	demands := make([]algo.Demand, 0, len(plan.Groups))
	// The ones that may not be anywhere first.
	for _, ofWorkload := range []bool{true, false} {
		for i := range plan.Groups {
			group := &plan.Groups[i]
			if (group.Mirror != nil) != ofWorkload {
				continue
			}
			demand := algo.Demand{Group: algo.Group{Size: amountsOf(group.Requests), Count: group.Count}}
			if ofWorkload {
				allowed := admits(group.Mirror)
				demand.Allowed = func(node string) bool { return allowed(t.nodes[node]) }
			}
			demands = append(demands, demand)
		}
	}
	return t.ledger.Room(demands)
}
