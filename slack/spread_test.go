package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
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
		// 20% of 10 pods is 2 placeholders: the spread requires 3 x 2.
		"more than the rate": {policy: newPolicy("20%", spreadOver(zone, 2)), nodes: three, count: 6, perDomain: 2, placed: 6},
		// 90% is 9 placeholders in 3 zones; zone a has 6 free cores.
		"the rate": {policy: newPolicy("90%", spreadOver(zone, 2)), nodes: three, count: 9, perDomain: 3, placed: 9},
		// 2 zones of 9 placeholders each: the head and 8, 9 of them in zone b; zone a has 6 free cores.
		"one zone is full": {policy: newPolicy("1", spreadOver(zone, 9)), nodes: three[:2], count: 18, perDomain: 9, placed: 6 + 9},
		"limited": {
			policy: newPolicy("20%", spreadOver(zone, 2), func(s *v1alpha1.ResourceSlackSpec) {
				s.Maximum = &v1alpha1.Amount{Placeholders: new(int32(4))}
			}),
			nodes: three, count: 4, perDomain: 1, placed: 4,
			reason: "spec.spread.minPerDomain is 2: 4 placeholders are in 3 domains of topology.kubernetes.io/zone",
		},
		"an unknown label": {
			policy: newPolicy("20%", spreadOver("rack", 2)), nodes: three, count: 2, placed: 2,
			reason: "spec.spread.topologyKey: no usable node of the pool has label rack: must be a label of the nodes such as",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracker, err := NewTracker(tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1_800_000_000, 0)
			for _, node := range tc.nodes {
				tracker.SetNode(node, now)
			}
			for _, pod := range pods {
				tracker.SetPod(pod)
			}
			plan := tracker.Next(now)
			placed := tracker.Capacity().Placeable(plan, pods)
			if plan.placeholders() != tc.count || plan.Spread.PerDomain != tc.perDomain || placed != tc.placed ||
				plan.Feasible == (tc.reason != "") ||
				!strings.Contains(strings.Join(plan.Reasons, "; "), tc.reason) {
				t.Errorf(
					"%d placeholders, %d per domain, %d fit, reasons %q; want %d, %d, %d, %q",
					plan.placeholders(),
					plan.Spread.PerDomain,
					placed,
					plan.Reasons,
					tc.count,
					tc.perDomain,
					tc.placed,
					tc.reason,
				)
			}
			for _, group := range plan.Groups {
				template := podTemplate(tc.policy, group)
				constraint := template.Spec.TopologySpreadConstraints
				if len(constraint) != 1 || constraint[0].TopologyKey != tc.policy.Spec.Spread.TopologyKey ||
					constraint[0].LabelSelector.MatchLabels[spreadLabel] != template.Labels[spreadLabel] {
					t.Errorf("%s: labels %v, constraints %v", group.Name, template.Labels, constraint)
				}
			}
		})
	}
	// The 2 x 3 placeholders remain during the cool-down if a zone has no node for a while.
	tracker, err := NewTracker(newPolicy("0", uncovered, spreadOver(zone, 2)))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range three {
		tracker.SetNode(node, noon)
	}
	tracker.SetPod(pods[0])
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
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(plan.Groups, func(g Group) bool { return g.Mirror != nil })
	if template := podTemplate(
		mirrored,
		plan.Groups[i],
	); template.Labels[spreadLabel] != "" ||
		len(template.Spec.TopologySpreadConstraints) != 0 {
		t.Errorf("mirrors have %s", fmt.Sprint(template.Labels, template.Spec.TopologySpreadConstraints))
	}
}
