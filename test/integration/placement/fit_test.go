package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestPlacementByFit checks the way from the nodes of two member clusters to a decision: a workload of 30 CPUs on one node is decided
// onto the cluster that it fits, although the other one has more CPUs in sum, and another placement does not get the same room.
func TestPlacementByFit(t *testing.T) {
	controller, members := startAgents(t, []string{"16", "16", "16"}, []string{"40"})
	h := members[0]
	h.Apply(t, testcluster.Example(t, "fit/placement.yaml")...)
	h.AwaitChosen(t, controller, "solver", "cluster2")
	var decisions clusterv1beta1.PlacementDecisionList
	must.Succeed(t, h.Client.List(t.Context(), &decisions, client.InNamespace("team")))
	if got := decisions.Items[0].Annotations[v1beta1.AnnotationReplicas]; !strings.HasPrefix(got, `{"cluster2":{"replicas":1,"since":`) {
		t.Errorf("annotation %q", got)
	}
	second := testcluster.Example(t, "fit/placement.yaml")
	second[0].SetName("second")
	h.Apply(t, second...)
	awaitMessage(t, h, controller, "second", clusterv1beta1.PlacementConditionSatisfied, "the workload does not fit 2 clusters",
		"cluster1: 0 replicas fit of 1: needs 30 CPU on one node; the largest free node of cluster1 has 16")
	table, _ := testcluster.MustPlimsoll(
		t, "placement", "fit", "-f", "../../../examples/placement/fit/workload.yaml", "--kubeconfig", h.Kubeconfig,
	)
	if !strings.Contains(table, "cluster1") || !strings.Contains(table, "cluster2") {
		t.Errorf("fit of the clusters of the hub:\n%s", table)
	}
	checkDivided(t, h, controller)
	checkSnapshot(t, h, "render", "second", "solver")
	checkForbidden(t, h)
}

// checkForbidden checks that a user who may not list ClusterCapacities gets the decision, with a warning.
func checkForbidden(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	const user = "reader"
	name := metav1.ObjectMeta{Name: user}
	c.Create(t, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"*"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
	}})
	c.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	kubeconfig := testcluster.KubeconfigOf(t, c.ControlPlane, user)
	var stdout, stderr string
	eventually.True(t, "the placement cannot be explained", testcluster.TextOf{Text: &stderr}, func(context.Context) (bool, error) {
		var code int
		stdout, stderr, code = testcluster.RunPlimsoll(t, "placement", "explain", "team/render", "--kubeconfig", kubeconfig)
		return code == 0, nil // the API server applies new rights after a while
	})
	if !strings.Contains(stderr, "listing ClusterCapacities is forbidden") || !strings.Contains(stdout, "cluster1") {
		t.Errorf("without the right to list ClusterCapacities:\n%s%s", stdout, stderr)
	}
}

// checkSnapshot checks that placements with a workload have the same rankings over the hub and over a snapshot of it.
func checkSnapshot(t *testing.T, c *testcluster.Cluster, placements ...string) {
	t.Helper()
	type ranked struct {
		Placements []struct {
			Name      string
			Decisions []string
			Clusters  []fleet.ClusterRanking
		}
	}
	read := func(args ...string) (out ranked) {
		t.Helper()
		stdout, _ := testcluster.MustPlimsoll(t, append([]string{"placement"}, append(args, "-o", "json")...)...)
		must.Succeed(t, json.Unmarshal([]byte(stdout), &out))
		return out
	}
	path := filepath.Join(t.TempDir(), "s.ndjson.gz")
	testcluster.MustPlimsoll(t, "snapshot", "-o", path, "--kubeconfig", c.Kubeconfig)
	found := 0
	for _, got := range read("decide", "--recording", path).Placements {
		if !slices.Contains(placements, got.Name) {
			continue
		}
		found++
		if diff := cmp.Diff(read("explain", "team/"+got.Name, "--kubeconfig", c.Kubeconfig).Placements[0], got); diff != "" {
			t.Errorf("%s: -hub +snapshot\n%s", got.Name, diff)
		}
	}
	if found != len(placements) {
		t.Errorf("the snapshot has %d of the placements %q", found, placements)
	}
}

// awaitMessage waits until the message of a condition of a placement has texts.
func awaitMessage(t *testing.T, c *testcluster.Cluster, log fmt.Stringer, placement, condition string, texts ...string) {
	t.Helper()
	message := ""
	eventually.True(
		t,
		fmt.Sprintf("condition %s of %s lacks %q", condition, placement, texts),
		log,
		func(ctx context.Context) (bool, error) {
			var p v1beta1.Placement
			if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "team", Name: placement}, &p); err != nil {
				return false, err
			}
			if found := meta.FindStatusCondition(p.Status.Conditions, condition); found != nil {
				message = found.Message
			}
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(message, text) }), nil
		},
	)
}

// checkDivided checks a workload in the field of a placement that refers to a Deployment: 12 replicas of 4 CPU are divided over cluster1,
// which 12 fit, and cluster2, which 2 fit beside the promised pod of 30 CPU: that pod may take the place of 8 of 10. Then it lowers the
// limit of cluster1 to 2 replicas.
func checkDivided(t *testing.T, c *testcluster.Cluster, log fmt.Stringer) {
	t.Helper()
	objects := testcluster.Example(t, "fit/divided.yaml")
	for _, object := range objects {
		object.SetNamespace("team")
	}
	deployment := objects[1].Object["spec"].(map[string]any)
	deployment["replicas"] = int64(12)
	container := deployment["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["resources"] = map[string]any{"requests": map[string]any{"cpu": "4"}}
	c.Apply(t, objects[1], objects[0])
	c.AwaitChosen(t, log, "render", "cluster1", "cluster2")
	explained, _ := testcluster.MustPlimsoll(t, "placement", "explain", "team/render", "--kubeconfig", c.Kubeconfig)
	if !regexp.MustCompile(`(?s)REPLICAS.*cluster1 +yes +-?\d+ +10 .*cluster2 +yes +-?\d+ +2 `).MatchString(explained) {
		t.Errorf("the division of 12 replicas:\n%s", explained)
	}
	c.Patch(t, &clusterv1.ManagedCluster{ObjectMeta: testcluster.RunningPod("cluster1", "", "0", "0").ObjectMeta}, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"plimsoll.dev/capacity-limit": `{"cpu": "8"}`}},
	})
	awaitMessage(t, c, log, "render", clusterv1beta1.PlacementConditionMisconfigured,
		"cluster1: selected for 10 replicas: the limit of cluster1 on the hub leaves 2 replicas")
	var events eventsv1.EventList
	eventually.True(t, "no event about the limit", log, func(ctx context.Context) (bool, error) {
		err := c.Client.List(ctx, &events, client.InNamespace("team"))
		return slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Reason == "PlacementWarning" && strings.Contains(e.Note, "the limit of cluster1")
		}), err
	})
	for _, object := range objects[:1] { // another placement gets nothing in cluster1, although its 12 replicas of 4 CPU fit
		object.SetName("late")
		spec := object.Object["spec"].(map[string]any)
		spec["numberOfClusters"], spec["workload"].(map[string]any)["requireFit"] = int64(2), false
		c.Apply(t, object)
	}
	awaitMessage(t, c, log, "late", clusterv1beta1.PlacementConditionSatisfied, "selected 1 of 2 clusters",
		"cluster1: 0 replicas fit of 6: the limit of cluster1 on the hub leaves 0 replicas")
	table, _ := testcluster.MustPlimsoll(
		t, "placement", "fit", "-f", "../../../examples/placement/fit/divided.yaml", "--kubeconfig", c.Kubeconfig,
	)
	if !strings.Contains(table, "cluster1: the limit of cluster1 on the hub leaves 0 replicas") {
		t.Errorf("fit of the clusters of the hub:\n%s", table)
	}
}
