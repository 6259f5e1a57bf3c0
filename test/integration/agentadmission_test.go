package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

const agentAdmission = "../../examples/placement/agent-admission.yaml"

// With the credentials of an agent and the admission policies of the example, only credible
// resources and expiring scores of the own cluster can be written. The agent itself works.
func TestAgentAdmission(t *testing.T) {
	t.Parallel()
	h := startFleetHub(t)
	h.accept(t, "cluster1")
	createAll(t, h.client, agentAdmission, "\x00", "")
	kubeconfig := filepath.Join(t.TempDir(), "hub")
	attacker, err := client.New(h.credentials(t, "cluster1", kubeconfig), client.Options{Scheme: kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: runningPod("cluster1", "", "0", "0").ObjectMeta}
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
		if err := patch(
			t.Context(),
			status,
		); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", status, err, want)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%.60s: took %s", status, took)
		}
	}
	score := func(name, status string) error {
		object := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: runningPod(name, "", "0", "0").ObjectMeta}
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
		if err := score(
			"plimsoll",
			status,
		); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", status, err, want)
		}
	}
	member, flags := startMember(t)
	member.create(t, readyNode("node", "8", "32Gi", nil))
	agent := member.startController(t, append(flags, "--cluster-name=cluster1", "--hub-kubeconfig="+kubeconfig,
		"--report-resources=always")...)
	h.awaitResources(t, agent, "cluster1", "cpu=8/8 memory=32Gi/32Gi pods=110/110")
	eventually.True(t, "the agent reports no scores", agent, func(ctx context.Context) (bool, error) {
		scores, until, err := h.scores(ctx, "cluster1")
		return len(scores) > 1 && until.After(time.Now()), err
	})
	agent.Stop(t)
}

// manyResources returns a list of n resources.
func manyResources(n int) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`"example.com/r%d":"1"`, i))
	}
	return "{" + strings.Join(items, ",") + "}"
}
