package scheduler

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// permitHistory creates an empty ConfigMap, and permits a user to get and update it. It waits until the permission applies.
func permitHistory(t *testing.T, client kubernetes.Interface, namespace, name, user string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"get", "update"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &v1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil {
		_, err = client.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	}
	must.Succeed(t, err)
	plane.AwaitRights(t, client, user, nil, namespace, role.Rules)
}

// historyConfig is the configuration of a scheduler that learns the usage of pods and keeps it in a ConfigMap.
const historyConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q}
profiles:
- plugins:
    score:
      enabled: [{name: PredictedUtilization, weight: 5}]
  pluginConfig:
  - name: PredictedUtilization
    args:
      podUsage: {type: Prometheus, address: %q}
      historyConfigMap: kube-system/plimsoll-history
      pollInterval: 200ms
`

// TestSchedulerKeepsHistory stops a scheduler that has read the usage of two pods of a ReplicaSet, and starts another
// scheduler while Prometheus has no data: the second scheduler knows the workload.
func TestSchedulerKeepsHistory(t *testing.T) {
	cp, config, client := testcluster.StartControlPlane(t)
	permitHistory(t, client, "kube-system", "plimsoll-history", "system:kube-scheduler")
	testcluster.CreateNode(t, client, "n")
	controller := true
	for _, name := range []string{"web-1", "web-2"} {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: &controller,
			}}},
			Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Image: "i"}}},
		}
		testcluster.Create(t, client.CoreV1().Pods("default"), pod)
	}
	var hasData atomic.Bool
	hasData.Store(true)
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		samples := ""
		if renamed := strings.Contains(r.FormValue("query"), "exported_"); hasData.Load() && r.FormValue("time") == "" && !renamed {
			sample := `{"metric":{"namespace":"default","pod":"%s"},"value":[%d,"0.5"]}`
			now := time.Now().Unix()
			samples = fmt.Sprintf(sample+","+sample, "web-1", now, "web-2", now)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, samples)
	}))
	defer prometheus.Close()
	kubeconfig := testcluster.KubeconfigOf(t, cp, "system:kube-scheduler")
	file := testcluster.WriteFile(t, fmt.Sprintf(historyConfig, kubeconfig, prometheus.URL))
	start := func() *program.Process {
		port := program.FreePort(t)
		process := program.Start(t, program.Path(t, "plimsoll-scheduler"), "--config="+file, "--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", port), "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
		get := testcluster.SchedulerPages(t, config, port)
		eventually.True(t, "the workload is not known", process, func(ctx context.Context) (bool, error) {
			body, err := get(ctx, "/metrics")
			return err == nil && strings.Contains(body, "plimsoll_prediction_workloads 1\n"), nil
		})
		return process
	}
	start().Stop(t)
	hasData.Store(false)
	start().Stop(t)
}
