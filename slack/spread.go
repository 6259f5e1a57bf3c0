package slack

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// spreadLabel is a label of the placeholders of the rate of a policy with spec.spread. Its value is the policy's name.
const spreadLabel = "plimsoll.dev/placeholder-spread"

// Spread is the promise of a plan per domain.
type Spread struct {
	// TopologyKey is the label whose values are the domains.
	TopologyKey string
	// Domains are the values of the usable nodes of the pool, sorted.
	Domains []string
	// PerDomain is the number of placeholders of the rate that each domain has at least.
	PerDomain int64
}

// spread returns the domains of the spread of the policy, nil without a spread.
func (t *Tracker) spread() *Spread {
	if t.policy.Spec.Spread == nil {
		return nil
	}
	key := t.policy.Spec.Spread.TopologyKey
	values := sets.New[string]()
	for _, a := range t.ledger.members {
		if a.Usable {
			if value, ok := a.node.Labels[key]; ok {
				values.Insert(value)
			}
		}
	}
	return &Spread{TopologyKey: key, Domains: sets.List(values)}
}

// setSpread sets the promise of a plan per domain, and the reasons why it is not what the policy requires.
func (p *Plan) setSpread(s *Spread, spec *v1alpha1.Spread) {
	p.Spread = s
	if s == nil || p.NoNodes {
		return
	}
	n := len(s.Domains)
	if n == 0 {
		p.fail("spec.spread.topologyKey: no usable node of the pool has label %s: must be a label of the nodes such as %s",
			s.TopologyKey, v1.LabelTopologyZone)
		return
	}
	count := p.placeholders()
	s.PerDomain = count / int64(n)
	if least := int64(*spec.MinPerDomain); s.PerDomain < least {
		p.fail("spec.spread.minPerDomain is %d: %s in %s of %s", least, format.Are(count, "placeholder"), format.Of(n, "domain"),
			s.TopologyKey)
	}
}

// spreadTemplate spreads the placeholders of the rate of a policy over the domains.
func spreadTemplate(policy *v1alpha1.ResourceSlack, template *v1.PodTemplateSpec) {
	if policy.Spec.Spread == nil {
		return
	}
	template.Labels[spreadLabel] = policy.Name
	template.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: policy.Spec.Spread.TopologyKey, WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{spreadLabel: policy.Name}},
	}}
}

// demands divides the placeholders of a group among the domains: each has the same number, and the remainder may be in any.
func (s *Spread) demands(d demand) []demand {
	if s == nil || len(s.Domains) == 0 || d.Count < int64(len(s.Domains)) {
		return []demand{d}
	}
	share := d.Count / int64(len(s.Domains))
	var all []demand
	for _, domain := range s.Domains {
		part := d
		part.Count = share
		part.Allowed = func(node *nodeCapacity) bool { return node.InPool && node.node.Labels[s.TopologyKey] == domain }
		all = append(all, part)
	}
	if d.Count -= share * int64(len(s.Domains)); d.Count > 0 {
		all = append(all, d)
	}
	return all
}
