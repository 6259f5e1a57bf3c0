package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// TestResume checks that a tracker resumes from groups with the names that it uses, and ignores other groups.
func TestResume(t *testing.T) {
	nodes := nodesOf(2, "web-", "16", "64Gi")
	head := Group{Name: "web-head", Head: true, Requests: list("1", "4Gi"), Count: 1}
	rest := Group{Name: "web-rate", Requests: list("1", "4Gi"), Count: 7}
	trash := Group{Name: "trash-1", Requests: list("1", "1Gi"), Count: 1000}
	other := Group{Name: "web-head-rate", Requests: list("1", "4Gi"), Count: 50}
	third := Group{Name: "web-head3", Head: true, Requests: list("1", "4Gi"), Count: 1}
	for name, tc := range map[string]struct{ existing, want []Group }{
		// 20% of 20 x (1, 4) is (4, 16), and 8 of (1, 4) are held: the cool-down starts.
		"own groups":        {[]Group{head, rest}, []Group{head, rest}},
		"other groups, too": {[]Group{trash, head, other, third, rest}, []Group{head, rest}},
		"only other groups": {[]Group{trash}, []Group{head, {Name: "web-rate", Requests: list("1", "4Gi"), Count: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := newTracker(t, newPolicy("20%"), nodes, podsOf(10, nodes, "p", "1", "4Gi")...)
			tracker.Resume(tc.existing)
			plan := tracker.Next(noon)
			if diff := cmp.Diff(tc.want, plan.Groups); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMinimumWithoutNodes checks which placeholders a pool without a usable node has: the minimum if the size of a node is known.
// A node has 16 CPUs and a DaemonSet pod of 1, so a placeholder has at most 3 CPUs.
func TestMinimumWithoutNodes(t *testing.T) {
	minimum := &v1alpha1.Amount{CPU: new(resource.MustParse("7"))}
	always := newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) { s.Minimum = minimum })
	scheduled := newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) {
		s.Schedules = []v1alpha1.Schedule{{From: "12:05", To: "12:10", Minimum: minimum, LeadSeconds: new(int32(120))}}
	})
	shaped := newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) {
		s.Minimum = minimum
		s.Pool.NodeShape = &v1alpha1.Amount{CPU: new(resource.MustParse("10")), Memory: new(resource.MustParse("8Gi"))}
	})
	const ready, gone, cordoned = "ready", "gone", "cordoned"
	type step struct {
		after time.Duration
		node  string
		want  string // placeholders and their CPU, and whether the plan is feasible
	}
	for name, tc := range map[string]struct {
		policy *v1alpha1.ResourceSlack
		steps  []step
	}{
		"never a node": {always, []step{{0, "", "0 false"}, {time.Minute, ready, "3 2334m true"}, {time.Hour, gone, "3 2334m true"}}},
		"a shape":      {shaped, []step{{0, "", "4 1750m true"}, {time.Minute, ready, "3 2334m true"}}},
		"the last node": {always, []step{
			{0, ready, "3 2334m true"}, {time.Minute, cordoned, "3 2334m true"}, {time.Hour, gone, "3 2334m true"},
		}},
		"a schedule": {scheduled, []step{
			{0, ready, "0 true"},
			{time.Minute, gone, "0 true"},
			{2 * time.Minute, "", "0 true"},
			{3 * time.Minute, "", "3 2334m true"},
			{10*time.Minute - 1, "", "3 2334m true"},
			{10 * time.Minute, "", "0 true"},
		}},
		"a rate": {newPolicy("50%"), []step{{0, ready, "1 2 true"}, {time.Minute, gone, "1 2 false"}, {time.Hour, "", "1 2 false"}}},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := nodesOf(1, "web-", "16", "64Gi")
			tracker := newTracker(t, tc.policy, nil, newPod("daemon", "web-0", "1", "1Gi", ownedBy("DaemonSet", true)))
			if tc.policy.Spec.MinRate != "0" {
				tracker.SetPod(podsOf(1, nodes, "p", "2", "1Gi")[0])
			}
			for _, s := range tc.steps {
				now := noon.Add(s.after)
				switch s.node {
				case ready:
					tracker.SetNode(nodes[0], now)
				case gone:
					tracker.DeleteNode("web-0")
				case cordoned:
					node := nodes[0].DeepCopy()
					node.Spec.Unschedulable = true
					tracker.SetNode(node, now)
				}
				plan := tracker.Next(now)
				got := fmt.Sprint(plan.placeholders(), " ", plan.Feasible)
				for _, group := range plan.Groups {
					got = fmt.Sprint(plan.placeholders(), " ", group.Requests.Cpu(), " ", plan.Feasible)
				}
				if got != s.want {
					t.Errorf("after %s: %s (%q), want %s", s.after, got, plan.Reasons, s.want)
				}
				restarted := newTracker(t, tc.policy, nil)
				restarted.ResumePool(plan.NodeShape, nil)
				after := restarted.Next(now)
				if s.node == gone && tc.policy.Spec.Minimum != nil && fmt.Sprint(after.Groups) != fmt.Sprint(plan.Groups) {
					t.Errorf("after %s and a restart: %v, want %v", s.after, after.Groups, plan.Groups)
				}
			}
		})
	}
}

// TestResumeDuringSchedule checks that a tracker that resumes while a schedule applies has a cool-down, as without schedules: 20% of
// 20 x (1, 4) is (4, 16), and 8 of (1, 4) are held.
func TestResumeDuringSchedule(t *testing.T) {
	nodes := nodesOf(2, "web-", "16", "64Gi")
	tracker := newTracker(t, newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) {
		s.Schedules = []v1alpha1.Schedule{{From: "11:00", To: "13:00", MinRate: "20%"}}
	}), nodes, podsOf(10, nodes, "p", "1", "4Gi")...)
	tracker.Resume([]Group{
		{Name: "web-head", Requests: list("1", "4Gi"), Count: 1},
		{Name: "web-rate", Requests: list("1", "4Gi"), Count: 7},
	})
	// The end of the schedule takes effect at once.
	for _, tc := range []struct {
		after time.Duration
		want  int64
	}{{0, 8}, {599 * time.Second, 8}, {601 * time.Second, 4}, {time.Hour, 1}} {
		if plan := tracker.Next(noon.Add(tc.after)); plan.placeholders() != tc.want {
			t.Errorf("after %s: %d placeholders, want %d: %q", tc.after, plan.placeholders(), tc.want, plan.Reasons)
		}
	}
}

// jumped returns a time whose wall clock is ahead by a whole number of seconds, and whose monotonic clock is the
// same. Package time has no function for it: a clock that is set has this effect.
func jumped(t *testing.T, now time.Time, seconds int64) time.Time {
	t.Helper()
	later := now
	*(*uint64)(unsafe.Pointer(&later)) += uint64(seconds) << 30 // the bits of the seconds in the first field
	if later.Sub(now) != 0 || later.Unix()-now.Unix() != seconds {
		t.Fatalf("%s is not %s with another wall clock", later, now)
	}
	return later
}

// TestClockJumps checks that a clock that is set an hour ahead does not end the cool-down of ten minutes, neither of
// the rate nor of a mirror, and that one that is set back does not extend it.
func TestClockJumps(t *testing.T) {
	for _, jump := range []int64{3600, -3600} {
		start := time.Now()
		nodes := nodesOf(2, "web-", "16", "64Gi")
		pods := podsOf(20, nodes, "p", "1", "4Gi")
		tracker := newTracker(t, newPolicy("20%"), nodes, pods...)
		tracker.SetWorkloads([]Workload{workloadIn("shop", "web", "50%", 10)})
		first := tracker.Next(start)
		before := first.placeholders()
		for _, pod := range pods[:10] {
			tracker.DeletePod(pod)
		}
		tracker.SetWorkloads([]Workload{workloadIn("shop", "web", "50%", 2)})
		tracker.Next(start.Add(time.Second))
		// 20% of the remaining 30 pods, and 50% of 2, 601 s after the start.
		for _, step := range []struct {
			after time.Duration
			want  int64
		}{{time.Minute, before}, {10 * time.Minute, before}, {10*time.Minute + time.Second, 7}} {
			plan := tracker.Next(jumped(t, start.Add(step.after), jump))
			if got := plan.placeholders(); got != step.want || plan.CoolDown != (step.want == before) {
				t.Errorf("jump by %d s, after %s: %d placeholders, cool-down %t; want %d", jump, step.after, got, plan.CoolDown, step.want)
			}
			// The end is in the time of the present clock, to the minute.
			end := start.Add(601*time.Second + time.Duration(jump)*time.Second).UTC().Format(time.RFC3339)
			if reasons := strings.Join(plan.Reasons, " "); plan.CoolDown && !strings.Contains(reasons, end) {
				t.Errorf("reasons %q, want the end %s", reasons, end)
			}
		}
	}
}
