package replay

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/autoscale"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// Autoscaler adds nodes to a run and removes them.
type Autoscaler struct {
	autoscale.Spec
	// Slack is the policy whose placeholders it holds, nil for none.
	Slack *v1alpha1.ResourceSlack `json:"slack,omitempty"`
}

// scaler is an autoscaler at work.
type scaler struct {
	Autoscaler
	groups   []group
	nodes    []scaled // those of the run, by their numbers
	daemons  map[int32]bool
	shrinker autoscale.Shrinker
	fit      *fit
	slack    *placeholders // nil without a policy
	// due is when it looks next; added when it has added nodes for the last time.
	due, added int64
	// fates of the pods that waited when it last looked.
	fates map[int32]autoscale.Fate
	done  result.Scaling
}

// scaled is a node as the autoscaler knows it.
type scaled struct {
	// group of the node, noGroup if it is no group's.
	group int
	kind  int
	// has is what it has for pods beside its daemons.
	has autoscale.Amounts
	// from and to are when it was made and when it was taken away.
	from, to int64
	// cost per hour; priced: it is known.
	cost   float64
	priced bool
}

const noGroup = -1

// addScaler makes an autoscaler, and the nodes that its groups have at least.
func (r *run) addScaler() error {
	if r.Autoscaler == nil {
		return nil
	}
	// Nodes and pods come to those of the input, which others use as well.
	r.Nodes, r.Pods = slices.Clone(r.Nodes), slices.Clone(r.Pods)
	groups, err := newGroups(r.Autoscaler.Spec, r.Nodes)
	if err != nil {
		return err
	}
	s := &scaler{Autoscaler: *r.Autoscaler, groups: groups, daemons: map[int32]bool{}, fates: map[int32]autoscale.Fate{}, added: -never}
	if s.Slack != nil {
		if s.slack, err = newPlaceholders(s.Slack, r.Workloads); err != nil {
			return err
		}
	}
	for i := range r.Nodes {
		node := r.Nodes[i].Object
		is := scaled{group: groupOf(groups, node), from: max(r.Nodes[i].Boot, 0), to: never, has: amountsOf(node.Status.Allocatable)}
		is.cost, is.priced = priceOf(groups, s.Loop.Priced, is.group, is.has)
		if is.group != noGroup {
			groups[is.group].nodes++
		}
		s.nodes = append(s.nodes, is)
	}
	r.scaler = s
	for i := range r.Pods {
		if facts.IsNodeBound(r.Pods[i].Object) {
			s.daemons[int32(i)] = true
		}
	}
	for i := range groups {
		g := &groups[i]
		g.takeDaemons(r.Pods, s.daemons)
		for g.nodes < g.Min {
			r.Nodes = append(r.Nodes, s.newNode(i, 0, r.Nodes))
		}
	}
	return nil
}

// newNode makes a node of a group that is there from a second on. Its name is one
// that no node has.
func (s *scaler) newNode(number int, from int64, there []Node) Node {
	g := &s.groups[number]
	name := ""
	for taken := true; taken; {
		g.made++
		name = fmt.Sprintf("%s-%05d", g.Name, g.made)
		taken = slices.ContainsFunc(there[:g.input], func(n Node) bool { return n.Object.Name == name })
	}
	g.nodes++
	is := scaled{group: number, from: from, to: never, has: g.has}
	is.cost, is.priced = priceOf(s.groups, s.Loop.Priced, number, g.has)
	s.nodes = append(s.nodes, is)
	return Node{Object: g.node(name), Boot: from}
}

// begin takes over what is there when a run begins.
func (s *scaler) begin(ctx context.Context, r *run) error {
	if s == nil {
		return nil
	}
	s.fit = newFit(r)
	for i := range s.nodes {
		is := &s.nodes[i]
		is.kind = s.fit.kind(r.Nodes[i].Object)
		for _, pod := range r.nodes[i].pods {
			if s.daemons[pod] {
				is.has = is.has.Minus(needsOf(&r.Pods[pod]))
			}
		}
	}
	for i := range s.groups {
		s.groups[i].kind = s.fit.kind(s.groups[i].template)
	}
	for i := range r.nodes {
		if r.nodes[i].up && i >= s.input() {
			if err := r.addDaemons(ctx, int32(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// input is how many nodes the input has.
func (s *scaler) input() int { return s.groups[0].input }

// next returns when the autoscaler looks next.
func (s *scaler) next() int64 {
	if s == nil {
		return never
	}
	return s.due
}

// why says what the autoscaler makes of a pod that waits.
func (s *scaler) why(pod int32) string {
	if s == nil {
		return ""
	}
	switch s.fates[pod] {
	case autoscale.Unfit:
		return "; fits no node of the autoscaler's groups"
	case autoscale.Full:
		return "; the groups whose nodes it fits have their most nodes"
	case autoscale.Booting, autoscale.Ordered:
		return "; a node for it boots"
	}
	return ""
}

// scaling returns what the autoscaler did.
func (s *scaler) scaling(r *run) *result.Scaling {
	if s == nil {
		return nil
	}
	done := s.done
	var changes []change
	for i := range s.nodes {
		is := &s.nodes[i]
		from, to := min(is.from, r.now), min(is.to, max(r.now, 0))
		hours := float64(max(to-from, 0)) / 3600
		done.NodeHours += hours
		done.Cost += hours * is.cost
		if !is.priced {
			done.Unpriced++
		}
		changes = append(changes, change{from, 1}, change{to, -1})
	}
	done.NodesPeak = peak(changes)
	if s.slack != nil {
		s.slack.kept.until(r.now)
		done.Slack = s.slack.kept.slack()
	}
	return &done
}

// workloads returns those that want placeholders of their own.
func workloads(objects []runtime.Object, policy *v1alpha1.ResourceSlack) (wanted []slack.Workload) {
	for _, object := range objects {
		if w, ok := slack.WorkloadOf(object); ok && slack.GoverningPolicy([]*v1alpha1.ResourceSlack{policy}, w) == 0 {
			wanted = append(wanted, w)
		}
	}
	return wanted
}

// CheckAutoscaler says what is wrong with an autoscaler for the nodes of an input.
func CheckAutoscaler(a *Autoscaler, nodes []Node) error {
	if _, err := newGroups(a.Spec, nodes); err != nil {
		return err
	}
	if a.Slack == nil {
		return nil
	}
	_, err := newPlaceholders(a.Slack, nil)
	return err
}

// Unpriced returns how many nodes have no price that is known.
func Unpriced(spec autoscale.Spec, nodes []Node) (unpriced int) {
	groups, err := newGroups(spec, nodes)
	if err != nil {
		return 0
	}
	for i := range nodes {
		node := nodes[i].Object
		if _, priced := priceOf(groups, spec.Loop.Priced, groupOf(groups, node), amountsOf(node.Status.Allocatable)); !priced {
			unpriced++
		}
	}
	return unpriced
}

// change is that there is one node more, or less.
type change struct {
	at   int64
	more int
}

// peak returns how many there are at most; what goes at a second goes before what
// comes.
func peak(changes []change) (most int) {
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			if a.at < b.at {
				return -1
			}
			return 1
		}
		return a.more - b.more
	})
	there := 0
	for _, c := range changes {
		there += c.more
		most = max(most, there)
	}
	return most
}

// bound returns a pod as it is on a node.
func bound(pod *v1.Pod, node string) *v1.Pod {
	on := *pod
	on.Spec.NodeName = node
	return &on
}
