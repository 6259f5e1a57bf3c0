package integration

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shutdown"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// usageLearner is a learner with fixed knowledge.
type usageLearner struct {
	mu        sync.Mutex
	workloads []predict.Past
	saved     time.Time
}

func (*usageLearner) Replay(*load.PodReading) {}

func (l *usageLearner) Workloads() []predict.Past {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.workloads)
}

func (l *usageLearner) Known() (workloads int, newest time.Time, isAside bool) {
	return len(l.Workloads()), l.saved, false
}

func (l *usageLearner) Restore(workloads []predict.Past, saved time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workloads, l.saved = workloads, saved
}

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
	if err != nil {
		t.Fatal(err)
	}
	plane.AwaitRights(t, client, user, nil, namespace, role.Rules)
}

// TestHistorySurvivesARestart saves a history that is larger than a ConfigMap when the scheduler stops, with the documented
// permissions only, and restores it in another process.
func TestHistorySurvivesARestart(t *testing.T) {
	t.Parallel()
	cp, _, client := startControlPlane(t, controlplane.Options{})
	const namespace, name, user = "kube-system", "plimsoll-history", "scheduler"
	config, err := cp.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	limited, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := limited.CoreV1().ConfigMaps(namespace)
	permitHistory(t, client, namespace, name, user)
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing ConfigMaps: %v, want forbidden", err)
	}

	first := &usageLearner{}
	for i := range 40_000 {
		usage := predict.PastUsage{Pods: float64(i + 1), Seconds: math.Sqrt(float64(i)), Mean: math.Cbrt(float64(i)), Request: 100}
		first.workloads = append(first.workloads, predict.Past{
			Namespace: "default",
			Kind:      "Deployment",
			Name:      fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)})),
			CPU:       usage,
			Memory:    usage,
		})
	}
	outer, stop := context.WithCancel(t.Context())
	ctx, release := shutdown.Context(outer)
	defer release()
	keeper := prediction.NewHistoryKeeper(prediction.HistoryOptions{Learner: first, ConfigMaps: maps, Name: name})
	keeper.Start(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.Run(ctx)
	}()
	stop()
	<-ended
	saved := keeper.State()
	if saved.SavedBytes == 0 || saved.SavedBytes > 1<<20 || saved.Dropped == 0 || saved.Dropped > 30_000 {
		t.Fatalf("saved %+v, want less than 1 MiB with a part of the workloads", saved)
	}

	second := &usageLearner{}
	prediction.NewHistoryKeeper(prediction.HistoryOptions{Learner: second, ConfigMaps: maps, Name: name}).Start(t.Context())
	if got, want := len(second.workloads), 40_000-saved.Dropped; got != want {
		t.Fatalf("restored %d workloads, want %d", got, want)
	}
	if age := time.Since(second.saved); age < 0 || age > time.Minute || second.workloads[0].CPU.Pods != 40_000 {
		t.Errorf("restored as of %s ago, with at most %v pods; want those with the most", age, second.workloads[0].CPU.Pods)
	}
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
	t.Parallel()
	cp, config, client := startControlPlane(t, controlplane.Options{})
	permitHistory(t, client, "kube-system", "plimsoll-history", "system:kube-scheduler")
	createNode(t, client, "n")
	controller := true
	for _, name := range []string{"web-1", "web-2"} {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: &controller,
			}}},
			Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Image: "i"}}},
		}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var hasData atomic.Bool
	hasData.Store(true)
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		samples := ""
		if hasData.Load() && r.FormValue("time") == "" {
			sample := `{"metric":{"namespace":"default","pod":"%s"},"value":[%d,"0.5"]}`
			now := time.Now().Unix()
			samples = fmt.Sprintf(sample+","+sample, "web-1", now, "web-2", now)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, samples)
	}))
	defer prometheus.Close()
	kubeconfig := kubeconfigOf(t, cp, "system:kube-scheduler")
	file := writeFile(t, fmt.Sprintf(historyConfig, kubeconfig, prometheus.URL))
	start := func() *program.Process {
		port := program.FreePort(t)
		process := program.Start(t, binaries.scheduler, "--config="+file, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
		get := schedulerPages(t, config, port)
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
