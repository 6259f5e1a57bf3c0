package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func spreadOver(key string, least int32) func(*v1alpha1.ResourceSlackSpec) {
	return func(s *v1alpha1.ResourceSlackSpec) {
		s.Spread = &v1alpha1.Spread{TopologyKey: key, MinPerDomain: &least}
	}
}

// TestSpread checks the promise of plans per zone, their reasons, and how many placeholders fit.
func TestSpread(t *testing.T) {
	const zone = v1.LabelTopologyZone
	in := func(name, cpu string) *v1.Node { return newNode("n-"+name, cpu, "64Gi", label(zone, name)) }
	three := []*v1.Node{in("a", "16"), in("b", "16"), in("c", "16")}
	// 10 pods of (1, 4) in zone a.
	pods := podsOf(10, three[:1], "p", "1", "4Gi")
	for name, tc := range map[string]struct {
		policy    *v1alpha1.ResourceSlack
		nodes     []*v1.Node
		count     int64
		perDomain int64
		placed    int64
		reason    string
	}{
		// 20% of 10 pods is 2 placeholders: the spread requires 3 x 2, and the head.
		"more than the rate": {policy: newPolicy("20%", spreadOver(zone, 2)), nodes: three, count: 7, perDomain: 2, placed: 7},
		// 90% is the head and 8 placeholders in 3 zones; zone a has 6 free cores.
		"the rate": {policy: newPolicy("90%", spreadOver(zone, 2)), nodes: three, count: 9, perDomain: 2, placed: 9},
		// 2 zones of 9 placeholders each, and the head; zone a has 6 free cores.
		"one zone is full": {policy: newPolicy("1", spreadOver(zone, 9)), nodes: three[:2], count: 19, perDomain: 9, placed: 6 + 9 + 1},
		// 16 in zone b leave nothing for the head, which fits zone a.
		"the head is in the other zone": {
			policy: newPolicy("1", spreadOver(zone, 16)), nodes: []*v1.Node{newNode("n-a", "27", "256Gi", label(zone, "a")), three[1]},
			count: 33, perDomain: 16, placed: 33,
		},
		"limited": {
			policy: newPolicy("20%", spreadOver(zone, 2), func(s *v1alpha1.ResourceSlackSpec) {
				s.Maximum = &v1alpha1.Amount{Placeholders: new(int32(4))}
			}),
			nodes: three, count: 4, perDomain: 1, placed: 4,
			reason: "spec.spread.minPerDomain is 2: 3 placeholders are divided among 3 domains of topology.kubernetes.io/zone",
		},
		"an unknown label": {
			policy: newPolicy("20%", spreadOver("rack", 2)), nodes: three, count: 2, placed: 2,
			reason: "spec.spread.topologyKey: no usable node of the pool has label rack: must be a label that the nodes have",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := newTracker(t, tc.policy, tc.nodes, pods...)
			plan := tracker.Next(noon)
			placed := tracker.Capacity().Placeable(plan, pods)
			if plan.placeholders() != tc.count || plan.Spread.PerDomain != tc.perDomain || placed != tc.placed ||
				plan.Feasible == (tc.reason != "") ||
				!strings.Contains(strings.Join(plan.Reasons, "; "), tc.reason) {
				t.Errorf("%d placeholders, %d per domain, %d fit, reasons %q; want %d, %d, %d, %q", plan.placeholders(),
					plan.Spread.PerDomain, placed, plan.Reasons, tc.count, tc.perDomain, tc.placed, tc.reason)
			}
			for _, group := range plan.Groups {
				template := podTemplate(tc.policy, group)
				if domain, ok := template.Spec.NodeSelector[tc.policy.Spec.Spread.TopologyKey]; ok == (group.Head || name == "an unknown label") ||
					ok && group.Name != "web-rate-"+domain ||
					template.Spec.NodeSelector["pool"] != "web" {
					t.Errorf("%s: node selector %v", group.Name, template.Spec.NodeSelector)
				}
			}
		})
	}
	// The 2 x 3 placeholders remain during the cool-down if a zone has no node for a while.
	tracker := newTracker(t, newPolicy("0", uncovered, spreadOver(zone, 2)), three, pods[0])
	tracker.Next(noon)
	tracker.DeleteNode("n-c")
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{time.Second, 6}, {600 * time.Second, 6}, {601 * time.Second, 4}} {
		if plan := tracker.Next(noon.Add(step.after)); plan.placeholders() != step.want {
			t.Errorf("%s after a zone lost its node: %d placeholders, want %d", step.after, plan.placeholders(), step.want)
		}
	}
	mirrored := newPolicy("20%", spreadOver(zone, 1))
	plan, err := Compute(mirrored, three, pods, []Workload{newWorkload("2")}, time.Unix(1_800_000_000, 0))
	must.Succeed(t, err)
	i := slices.IndexFunc(plan.Groups, func(g Group) bool { return g.Mirror != nil })
	if selector := podTemplate(mirrored, plan.Groups[i]).Spec.NodeSelector; selector[zone] != "" {
		t.Errorf("mirrors have the node selector %v", selector)
	}
}

// TestSpreadIsKept checks that a tracker resumes the placeholders of all domains, and that a pool without nodes keeps its domains.
func TestSpreadIsKept(t *testing.T) {
	policy := newPolicy("0", uncovered, spreadOver(v1.LabelTopologyZone, 1), func(s *v1alpha1.ResourceSlackSpec) {
		s.Minimum = &v1alpha1.Amount{Placeholders: new(int32(5))}
	})
	in := func(zone string) *v1.Node { return newNode("n-"+zone, "16", "64Gi", label(v1.LabelTopologyZone, zone)) }
	first := newTracker(t, policy, []*v1.Node{in("a"), in("b")})
	const want = "[web-rate-a 3 web-rate-b 2]"
	names := func(p Plan) (all []string) {
		for _, group := range p.Groups {
			all = append(all, fmt.Sprint(group.Name, " ", group.Count))
		}
		return all
	}
	before := first.Next(noon)
	first.DeleteNode("n-a")
	first.DeleteNode("n-b")
	after := first.Next(noon.Add(time.Hour))
	second := newTracker(t, policy, nil)
	second.Resume(before.Groups)
	second.ResumePool(before.NodeShape, before.Spread.Domains)
	for name, plan := range map[string]Plan{"first": before, "without nodes": after, "resumed": second.Next(noon)} {
		if got := fmt.Sprint(names(plan)); got != want || !plan.Feasible {
			t.Errorf("%s: %s (%q), want %s", name, got, plan.Reasons, want)
		}
	}
	if held := second.planner.held.Current(); held.Rest.Count != 5 {
		t.Errorf("%d placeholders resumed, want 5", held.Rest.Count)
	}
}

// TestDomainName checks that names are valid labels: at most 63 characters.
func TestDomainName(t *testing.T) {
	long := strings.Repeat("p", 50) + rateSuffix
	for _, tc := range []struct{ group, domain, want string }{
		{"web-rate", "eu-west-1a", "web-rate-eu-west-1a"},
		{"web-rate", "Rack_1", "web-rate-"},
		{"web-rate", "", "web-rate-"},
		{long, "eu-west-1a", long + "-"},
	} {
		got := domainName(tc.group, tc.domain)
		if !strings.HasPrefix(got, tc.want) || len(validation.IsDNS1123Label(got)) > 0 || got != tc.want && len(got) != len(tc.group)+8 {
			t.Errorf("%s, domain %q: %s, want %s", tc.group, tc.domain, got, tc.want)
		}
	}
}
