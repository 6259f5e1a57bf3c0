package slack

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	algo "github.com/plimsoll-k8s/plimsoll/internal/algo/slack"
)

// Tracker follows the pool of one policy as nodes and pods come and go, told one
// change at a time, and plans for it. It is not safe for concurrent use.
type Tracker struct {
	policy  *v1alpha1.ResourceSlack
	wanted  algo.Policy
	ledger  *algo.Ledger
	planner *algo.Planner
}

// NewTracker returns a tracker of an empty pool. An error is one of the policy.
func NewTracker(policy *v1alpha1.ResourceSlack) (*Tracker, error) {
	t := &Tracker{ledger: algo.NewLedger(), planner: algo.NewPlanner()}
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
	return observed.InPool
}

// DeleteNode forgets a node.
func (t *Tracker) DeleteNode(name string) { t.ledger.DeleteNode(name) }

// SetPod takes a pod in.
func (t *Tracker) SetPod(pod *v1.Pod) { t.ledger.SetPod(podID(pod), observePod(pod)) }

// DeletePod forgets a pod.
func (t *Tracker) DeletePod(pod *v1.Pod) { t.ledger.DeletePod(podID(pod)) }

func podID(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

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
		}
	}
	t.planner.Resume(t.wanted, head, rest)
}

// Next returns the plan at a time. Free is what the pool's nodes have to spare.
func (t *Tracker) Next(now time.Time) (plan Plan, free v1.ResourceList) {
	pool := t.ledger.Pool()
	return planOf(t.policy.Name, t.planner.Next(pool, t.wanted, now.Unix())), listOf(pool.Free)
}
