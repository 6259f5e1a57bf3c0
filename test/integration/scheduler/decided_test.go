package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/decisions"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// expectDecision reads the decision on the pod by-load, which was placed on calm by its load, from the port of the scheduler: with a token
// that may get its page, not without.
func expectDecision(t *testing.T, client kubernetes.Interface, port int) {
	t.Helper()
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "default"}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	answer, err := client.CoreV1().ServiceAccounts(
		"default",
	).CreateToken(t.Context(), "reader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must.Succeed(t, err)
	args := []string{
		"explain", "pod", "by-load", fmt.Sprintf("--as-decided=https://127.0.0.1:%d", port), "-o", "json",
		"--scheduler-token-file", testcluster.WriteFile(t, answer.Status.Token),
	}
	if _, stderr, code := testcluster.RunPlimsoll(t, args...); code != 1 ||
		!strings.Contains(stderr, "403 Forbidden: the token or certificate must permit get of the URL /configz") {
		t.Errorf("without the right: exit code %d, %s", code, stderr)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "configz"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/configz"}, Verbs: []string{"get"}}},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "configz"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "configz"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: "default"}},
	}, metav1.CreateOptions{})
	must.Succeed(t, err)
	var stdout, stderr string
	eventually.True(t, "the decision cannot be read", testcluster.TextOf{Text: &stderr}, func(context.Context) (bool, error) {
		var code int
		stdout, stderr, code = testcluster.RunPlimsoll(t, args...)
		return code == 0, nil // the scheduler caches the refusal for seconds
	})
	var d decisions.Decision
	must.Succeed(t, json.Unmarshal([]byte(stdout), &d))
	// hectic: 4 CPUs requested by a, which was there before; the load is 80 % and 20 %.
	if d.Node.Name != "calm" || d.Scheduler != "trimaran" || d.Scored != 2 || d.Next == nil || d.Next.Name != "hectic" ||
		d.Node.Total <= d.Next.Total || d.Node.Load == nil || d.Node.Load.CPU != 0.2 || d.Next.Load.CPU != 0.8 || d.Next.CPURequested != 4000 {
		t.Errorf("decision %s", stdout)
	}
	args[5] = "table"
	table, _ := testcluster.MustPlimsoll(t, args...)
	for _, want := range []string{"default/by-load -> calm at ", "the next best of 2 nodes, hectic, scored ", "LowRiskOverCommitment", "CPU 80 %"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	args[2] = "nobody"
	if _, stderr, code := testcluster.RunPlimsoll(t, args...); code != 1 || !strings.Contains(stderr, "not among the last ") {
		t.Errorf("an unknown pod: exit code %d, %s", code, stderr)
	}
}
