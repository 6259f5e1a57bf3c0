package scaling

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// placeholderNamespace is the namespace of placeholders.
const placeholderNamespace = "plimsoll-slack"

// placeholders maintains the placeholders of a policy from pass to pass.
type placeholders struct {
	loop *slack.Loop
	// previous are the placeholders of the last pass, with their nodes.
	previous []*v1.Pod
	// bound are the pods with a node, by number. A pod keeps its object as long as it is on the
	// same node.
	bound []*v1.Pod
	clock func(second int64) time.Time
	kept  slackKept
}

func newPlaceholders(config *Config, in *recording.Input) (*placeholders, error) {
	policy := config.Slack
	loop, err := slack.NewLoop(policy, placeholderNamespace)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", v1alpha1.Kind, policy.Name, err)
	}
	loop.SetWorkloads(slack.WorkloadsOf(in.Workloads))
	return &placeholders{loop: loop, clock: in.Clock}, nil
}

// next returns the placeholders of a pass. A placeholder that remains on its node has spec.nodeName
// set.
func (p *placeholders) next(c *Cluster) ([]*v1.Pod, slack.Plan) {
	var nodes []*v1.Node
	var pods []*v1.Pod
	p.bound = append(p.bound, make([]*v1.Pod, max(0, len(c.Pods)-len(p.bound)))...)
	for i := range c.Ready {
		node := c.Nodes[c.Ready[i].Number].Object
		nodes = append(nodes, node)
		for _, number := range c.Ready[i].Pods {
			pod := p.bound[number]
			if pod == nil || pod.Spec.NodeName != node.Name {
				pod = recording.Bind(c.Pods[number].Object, node.Name)
				p.bound[number] = pod
			}
			pods = append(pods, pod)
		}
	}
	current, plan := p.loop.Next(nodes, pods, p.previous, p.clock(c.Now))
	p.previous = current
	return current, plan
}

// slackKept accumulates the available fraction of the target slack over time.
type slackKept struct {
	// fraction that was available at second since, if there was a target.
	fraction  float64
	since     int64
	hasTarget bool

	sum, seconds float64 // sum of fraction x seconds
	reached      bool    // the target was available at least once
	min          float64 // since the target was reached
}

// update sets the fraction from a second on: the requests of the placeholders with a
// node over a target.
func (k *slackKept) update(now int64, target resources.Amounts, placeholders []placeholder) {
	k.advance(now)
	var available resources.Amounts
	for _, h := range placeholders {
		if h.pod.Spec.NodeName != "" {
			available = available.Add(h.Requests)
		}
	}
	k.hasTarget, k.fraction = !target.IsZero(), 1
	for r, amount := range target.All() {
		k.fraction = min(k.fraction, float64(available.Get(r))/float64(amount))
	}
	if !k.hasTarget {
		return
	}
	if k.fraction == 1 && !k.reached {
		k.reached, k.min = true, 1
	}
	if k.reached {
		k.min = min(k.min, k.fraction)
	}
}

// advance adds the time up to a second.
func (k *slackKept) advance(now int64) {
	if k.hasTarget {
		k.sum += k.fraction * float64(now-k.since)
		k.seconds += float64(now - k.since)
	}
	k.since = now
}

// result returns the fraction over the time up to a second.
func (k *slackKept) result(now int64) *result.SlackKept {
	k.advance(now)
	kept := &result.SlackKept{Min: k.min}
	if k.seconds > 0 {
		kept.Mean = k.sum / k.seconds
	}
	return kept
}
