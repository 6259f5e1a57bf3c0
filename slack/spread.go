package slack

import (
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// spread returns the domains of the spread of the policy, nil without a spread: the domains of the usable nodes of the pool, or else the
// last domains.
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
	if t.ledger.totals.Nodes > 0 || t.domains == nil || t.domains.TopologyKey != key {
		t.domains = &Spread{TopologyKey: key, Domains: sets.List(values)}
	}
	return &Spread{TopologyKey: key, Domains: t.domains.Domains}
}

// setSpread divides the placeholders of the rate among the domains, and adds the reasons why they are not what the policy requires. The
// first domains have the remainder. Placeholders for the biggest pod may be in any domain.
func (p *Plan) setSpread(s *Spread, spec *v1alpha1.Spread) {
	p.Spread = s
	if s == nil || p.NoNodes {
		return
	}
	n := len(s.Domains)
	if n == 0 {
		p.fail(
			"spec.spread.topologyKey: no usable node of the pool has label %s: must be a label that the nodes have; without it, leave out "+
				"spread",
			s.TopologyKey,
		)
		return
	}
	rate := Group{}
	if last := len(p.Groups) - 1; last >= 0 && !p.Groups[last].Head {
		rate, p.Groups = p.Groups[last], p.Groups[:last]
	}
	s.PerDomain = rate.Count / int64(n)
	for i, domain := range s.Domains {
		group := rate
		group.Name, group.NodeSelector = domainName(rate.Name, domain), map[string]string{s.TopologyKey: domain}
		if group.Count = s.PerDomain; int64(i) < rate.Count%int64(n) {
			group.Count++
		}
		if group.Count > 0 {
			p.Groups = append(p.Groups, group)
		}
	}
	if least := int64(*spec.MinPerDomain); s.PerDomain < least {
		p.fail("spec.spread.minPerDomain is %d: %s divided among %s of %s", least, format.Are(rate.Count, "placeholder"),
			format.Of(n, "domain"), s.TopologyKey)
	}
}

// domainName returns the name of the group in a domain: a valid name and label value.
func domainName(group, domain string) string {
	name := group + "-" + domain
	if len(name) > validation.LabelValueMaxLength || len(validation.IsDNS1123Label(domain)) > 0 {
		hash := fnv.New32a()
		fmt.Fprint(hash, domain)
		name = fmt.Sprintf("%s-%07x", group, hash.Sum32()>>4)
	}
	return name
}
