package slack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResume checks that a tracker resumes from groups with the names that it uses, and ignores others.
func TestResume(t *testing.T) {
	nodes := nodesOf(2, "web-", "16", "64Gi")
	head, rest := Group{Name: "web-head", Head: true, Requests: list("1", "4Gi"), Count: 1}, Group{Name: "web-rate", Requests: list("1",
		"4Gi"), Count: 7}
	for name, tc := range map[string]struct{ existing, want []Group }{
		// 20% of 20 x (1, 4) is (4, 16), and 8 of (1, 4) are held: the cool-down starts.
		"own groups": {[]Group{head, rest}, []Group{head, rest}},
		"other groups, too": {[]Group{{Name: "trash-1", Requests: list("1", "1Gi"), Count: 1000}, head, {
			Name:     "web-head-rate",
			Requests: list("1", "4Gi"), Count: 50,
		}, {Name: "web-head3", Head: true, Requests: list("1",
			"4Gi"), Count: 1}, rest}, []Group{head, rest}},
		"only other groups": {[]Group{{Name: "trash-1", Requests: list("1", "1Gi"), Count: 1000}}, []Group{
			head,
			{Name: "web-rate", Requests: list("1", "4Gi"), Count: 3},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tracker, err := NewTracker(newPolicy("20%"))
			if err != nil {
				t.Fatal(err)
			}
			tracker.Resume(tc.existing)
			for _, node := range nodes {
				tracker.SetNode(node, noon)
			}
			for _, pod := range podsOf(10, nodes, "p", "1", "4Gi") {
				tracker.SetPod(pod)
			}
			plan := tracker.Next(noon)
			if diff := cmp.Diff(tc.want, plan.Groups); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
