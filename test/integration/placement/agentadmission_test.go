package placement

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

const agentAdmission = "examples/placement/agent-admission.yaml"

// With the credentials of an agent and the admission policies of the example, only credible
// resources and expiring scores of the own cluster can be written. The agent itself works.
func TestAgentAdmission(t *testing.T) {
	h := testcluster.StartFleetHub(t)
	h.Accept(t, "cluster1")
	testcluster.CreateAll(t, h.Strict, agentAdmission)
	kubeconfig := filepath.Join(t.TempDir(), "hub")
	attacker, err := client.New(h.Credentials(t, "cluster1", kubeconfig), client.Options{Scheme: kube.Scheme()})
	must.Succeed(t, err)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: testcluster.RunningPod("cluster1", "", "0", "0").ObjectMeta}
	cluster.Namespace = ""
	patch := func(ctx context.Context, status string) error {
		return attacker.Status().Patch(ctx, cluster.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))
	}
	// The API server applies new policies after a while.
	attempt := 0
	eventually.True(t, "the policies have no effect", nil, func(ctx context.Context) (bool, error) {
		attempt++ // the claims must differ from the claims of the previous attempt
		return apierrors.IsInvalid(patch(ctx, fmt.Sprintf(`{"clusterClaims":[{"name":"attempt","value":"%d"}]}`, attempt))), nil
	})
	for status, want := range map[string]string{
		`{"allocatable":{"cpu":"4","memory":"16Gi","pods":110},"capacity":{"cpu":4,"memory":"17179869184"}}`: "",
		`{"clusterClaims":[{"name":"platform.open-cluster-management.io","value":"AWS"}]}`:                   "status.clusterClaims: may not be written",
		`{"version":{"kubernetes":"v1.99.0"}}`:                                                               "status.version: may not be written",
		`{"conditions":[{"type":"ManagedClusterConditionAvailable","status":"True","reason":"Mine","message":"",` +
			`"lastTransitionTime":"2026-11-21T05:44:46Z"}]}`: "status.conditions: may not be written",
		`{"allocatable":{"cpu":"-1"}}`:               "must be at least 0",
		`{"allocatable":{"cpu":"1e2147483647"}}`:     "no exponent",
		`{"capacity":{"memory":"1e2147483647"}}`:     "no exponent",
		`{"allocatable":{"cpu":"100000001"}}`:        "at most 100M cores",
		`{"capacity":{"memory":"5Ei"}}`:              "4Ei of memory",
		`{"allocatable":` + manyResources(101) + `}`: "at most 100 resources",
	} {
		began := time.Now()
		if err := patch(t.Context(), status); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", status, err, want)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%.60s: took %s", status, took)
		}
	}
	score := func(name, status string) error {
		object := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: testcluster.RunningPod(name, "", "0", "0").ObjectMeta}
		object.Namespace = "cluster1"
		apply := client.RawPatch(types.ApplyYAMLPatchType, []byte(fmt.Sprintf(
			`{"apiVersion":"cluster.open-cluster-management.io/v1alpha1","kind":"AddOnPlacementScore","metadata":{"name":%q}}`, name)))
		if err := attacker.Patch(t.Context(), object.DeepCopy(), apply, client.FieldOwner("attacker")); err != nil {
			return err
		}
		return attacker.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))
	}
	if err := score("other", "{}"); !apierrors.IsForbidden(err) {
		t.Errorf("scores of another name: %v", err)
	}
	// The policy of scores may be applied later than the policy of clusters.
	eventually.True(t, "the policy of scores has no effect", nil, func(context.Context) (bool, error) {
		return score("plimsoll", `{"scores":[{"name":"free","value":100}]}`) != nil, nil
	})
	var many []string
	for i := range 51 {
		many = append(many, fmt.Sprintf(`{"name":"score%d","value":1}`, i))
	}
	for status, want := range map[string]string{
		`{"scores":[{"name":"free","value":100}],"validUntil":null}`:                       "status.validUntil: must be set",
		`{"scores":[` + strings.Join(many, ",") + `],"validUntil":"2099-01-01T00:00:00Z"}`: "at most 50 scores",
		`{"scores":[{"name":"free","value":100}],"validUntil":"2099-01-01T00:00:00Z"}`:     "",
	} {
		if err := score("plimsoll", status); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", status, err, want)
		}
	}
	checkCapacityAdmission(t, h, attacker)
	member := h.Cluster // the hub is the member, too
	flags := member.AgentFlags(t)
	member.Create(t, testcluster.ReadyNode("node", "8", "32Gi", nil))
	agent := member.StartController(t, append(flags, "--cluster-name=cluster1", "--hub-kubeconfig="+kubeconfig,
		"--report-resources=always")...)
	h.AwaitResources(t, agent, "cluster1", "cpu=8/8 memory=32Gi/32Gi pods=110/110")
	eventually.True(t, "the agent reports no scores", agent, func(ctx context.Context) (bool, error) {
		scores, until, err := h.Scores(ctx, "cluster1")
		return len(scores) > 1 && until.After(time.Now()), err
	})
	agent.Stop(t)
}

// checkCapacityAdmission checks with the credentials of the agent of cluster1 that it can write the ClusterCapacity of its own cluster
// only, and not the limit of its cluster; nor can the agent of Open Cluster Management, which may update its ManagedCluster.
func checkCapacityAdmission(t *testing.T, h *testcluster.Hub, attacker client.Client) {
	t.Helper()
	as := func(user string, groups ...string) client.Client {
		config := rest.CopyConfig(h.Access)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
		c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
		must.Succeed(t, err)
		return c
	}
	capacity := func(c client.Client, namespace, cluster string) error {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("plimsoll.dev/v1alpha1")
		object.SetKind("ClusterCapacity")
		object.SetNamespace(namespace)
		object.SetName("plimsoll")
		return c.Patch(t.Context(), object, client.RawPatch(types.ApplyYAMLPatchType, []byte(fmt.Sprintf(
			`{"apiVersion":"plimsoll.dev/v1alpha1","kind":"ClusterCapacity","metadata":{"name":"plimsoll","namespace":%q},`+
				`"status":{"cluster":%q,"observedAt":"2026-11-21T12:00:00Z"}}`, namespace, cluster))), client.FieldOwner("attacker"),
			client.ForceOwnership)
	}
	annotate := func(c client.Client, name, value string, subresources ...string) error {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}
		patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value)))
		if len(subresources) > 0 {
			return c.SubResource(subresources[0]).Patch(t.Context(), cluster, patch)
		}
		return c.Patch(t.Context(), cluster, patch)
	}
	const limit, own = "plimsoll.dev/capacity-limit", "metadata.annotations[plimsoll.dev/capacity-limit]: may not be written"
	agent, member := as("system:serviceaccount:cluster1:plimsoll-agent"), as("x", "system:open-cluster-management:cluster1")
	eventually.True(t, "the policies of capacities have no effect", nil, func(context.Context) (bool, error) {
		return capacity(attacker, "cluster1", "other") != nil && annotate(member, limit, "{}") != nil, nil
	})
	must.Succeed(t, annotate(h.Strict, limit, `{"cpu": "10"}`))
	for what, tc := range map[string]struct {
		err  error
		want string
	}{
		"own capacity":              {capacity(attacker, "cluster1", "cluster1"), ""},
		"about another cluster":     {capacity(attacker, "cluster1", "cluster2"), "status.cluster: must be the namespace"},
		"by an administrator":       {capacity(h.Strict, "default", "cluster1"), "status.cluster: must be the namespace"},
		"in another namespace":      {capacity(attacker, "default", "default"), "forbidden"},
		"with rights for all":       {capacity(agent, "default", "default"), "an agent may write the capacity of its own cluster only"},
		"metadata":                  {annotate(attacker, "a", "b"), "forbidden"},
		"limit":                     {annotate(attacker, limit, `{"cpu": "11"}`), "forbidden"},
		"limit, with rights":        {annotate(agent, limit, `{"cpu": "11"}`), own},
		"limit, by OCM's agent":     {annotate(member, limit, `{"cpu": "11"}`), own},
		"metadata, by OCM's agent":  {annotate(member, "a", "b"), ""},
		"limit, through the status": {annotate(attacker, limit, `{"cpu": "11"}`, "status"), ""}, // without an effect
	} {
		if tc.want == "" && tc.err != nil || tc.want != "" && (tc.err == nil || !strings.Contains(tc.err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", what, tc.err, tc.want)
		}
	}
	var cluster clusterv1.ManagedCluster
	if err := h.Strict.Get(t.Context(), client.ObjectKey{Name: "cluster1"}, &cluster); err != nil ||
		cluster.Annotations[limit] != `{"cpu": "10"}` {
		t.Errorf("annotations %v, %v", cluster.Annotations, err)
	}
}

// manyResources returns a list of n resources.
func manyResources(n int) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`"example.com/r%d":"1"`, i))
	}
	return "{" + strings.Join(items, ",") + "}"
}
