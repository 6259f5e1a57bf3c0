package replay

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// reserve is the namespace that placeholders seem to be in.
const reserve = "plimsoll-slack"

// placeholders are those of a policy, as an autoscaler holds them from one look to
// the next.
type placeholders struct {
	loop *slack.Loop
	// held are those of the last look, on the nodes that they were put on.
	held []*v1.Pod
	// running are the pods as the loop is told of them: the same object as long as
	// nothing changes.
	running map[int32]*v1.Pod
	kept    kept
}

func newPlaceholders(policy *v1alpha1.ResourceSlack, objects []runtime.Object) (*placeholders, error) {
	loop, err := slack.NewLoop(policy, reserve)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", v1alpha1.Kind, policy.Name, err)
	}
	loop.SetWorkloads(workloads(objects, policy))
	return &placeholders{loop: loop, running: map[int32]*v1.Pod{}}, nil
}

// next returns what is to be held now. What may stay where it was is there.
func (p *placeholders) next(r *run) ([]*v1.Pod, slack.Plan) {
	var nodes []*v1.Node
	var pods []*v1.Pod
	for i := range r.nodes {
		n := &r.nodes[i]
		if !n.up {
			continue
		}
		nodes = append(nodes, r.Nodes[i].Object)
		for _, number := range n.pods {
			on := p.running[number]
			if on == nil || on.Spec.NodeName != n.name {
				on = bound(r.Pods[number].Object, n.name)
				p.running[number] = on
			}
			pods = append(pods, on)
		}
	}
	return p.loop.Next(nodes, pods, p.held, at(r.now))
}

// requested returns what a placeholder takes of a node.
func requested(pod *v1.Pod) trace.Amounts {
	requests := noderes.Requests(pod)
	of := func(name v1.ResourceName) int64 { return noderes.NewResource(name).Amount(requests[name]) }
	return trace.Amounts{CPU: of(v1.ResourceCPU), Memory: of(v1.ResourceMemory), GPU: of(GPU)}
}

// kept adds up what is kept over time.
type kept struct {
	// part is what was there when the autoscaler last looked, at a second.
	part  float64
	since int64
	known bool

	sum, seconds float64
	full         bool
	least        float64
}

// look takes in what there is at a second: the placeholders of a plan, and what they
// need.
func (k *kept) look(now int64, plan slack.Plan, held []*v1.Pod, needs []trace.Amounts) {
	k.until(now)
	var there trace.Amounts
	for i, pod := range held {
		if pod.Spec.NodeName != "" {
			there.CPU += needs[i].CPU
			there.Memory += needs[i].Memory
		}
	}
	cpu, memory := noderes.CPU.Amount(plan.Target[v1.ResourceCPU]), noderes.Memory.Amount(plan.Target[v1.ResourceMemory])
	k.known, k.part = cpu > 0 || memory > 0, 1
	if cpu > 0 {
		k.part = min(k.part, float64(there.CPU)/float64(cpu))
	}
	if memory > 0 {
		k.part = min(k.part, float64(there.Memory)/float64(memory))
	}
	if !k.known {
		return
	}
	if k.part == 1 && !k.full {
		k.full, k.least = true, 1
	}
	if k.full {
		k.least = min(k.least, k.part)
	}
}

// until counts the time until a second.
func (k *kept) until(now int64) {
	if k.known {
		k.sum += k.part * float64(now-k.since)
		k.seconds += float64(now - k.since)
	}
	k.since = now
}

func (k *kept) slack() *result.SlackKept {
	return &result.SlackKept{Mean: part(k.sum, k.seconds), Min: k.least}
}
