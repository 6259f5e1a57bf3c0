package shadow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/command"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

func TestMain(m *testing.M) {
	controlplane.RunIfChild()
	if len(os.Args) > 1 && os.Args[1] == whatif.RunCommand {
		cmd := whatif.NewRunCommand()
		cmd.SetArgs(os.Args[2:])
		if err := cmd.ExecuteContext(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(plane.Main(m))
}

// speed is the number of recorded seconds for each second of the test.
const speed = 60

// startScheduler runs kube-scheduler with its default profile.
func startScheduler(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, cp.WriteKubeconfig(kubeconfig, "system:kube-scheduler"))
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	content := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %q}\n", kubeconfig)
	must.Succeed(t, os.WriteFile(config, []byte(content), 0o600))
	opts := scheduleroptions.NewOptions()
	opts.ConfigFile, opts.SecureServing.BindPort = config, 0
	ctx, stop := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- command.Run(ctx, opts, func(*scheduler.Scheduler) { close(started) }) }()
	select {
	case <-started:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); <-ended })
}

// access returns the access of a ServiceAccount with exactly the roles of the chart, which have no verb that writes.
func access(t *testing.T, cp *controlplane.ControlPlane, client kubernetes.Interface) *rest.Config {
	t.Helper()
	const user = "system:serviceaccount:default:plimsoll-shadow"
	groups := []string{"system:serviceaccounts", "system:authenticated"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-shadow"}}
	for _, part := range []string{"shadow", "pod-metrics"} {
		raw, err := os.ReadFile("../../../charts/plimsoll/generated/rbac/" + part + ".yaml")
		must.Succeed(t, err)
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		must.Succeed(t, err)
		role.Rules = append(role.Rules, object.(*rbacv1.ClusterRole).Rules...)
	}
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			if verb != "list" && verb != "watch" && verb != "get" || strings.Contains(fmt.Sprint(rule), "secrets") {
				t.Errorf("rule %v: want only get, list and watch, and no secrets", rule)
			}
		}
	}
	testcluster.Create(t, client.RbacV1().ClusterRoles(), role)
	_, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: role.Name, Namespace: "default"}},
	}, metav1.CreateOptions{})
	must.Succeed(t, err)
	plane.AwaitRights(t, client, user, groups, "", role.Rules)
	config, err := cp.Config(user, groups...)
	must.Succeed(t, err)
	return config
}

// metricsAPI returns the answers of metrics-server: pods use as many millicores as their annotation says.
func metricsAPI(client kubernetes.Interface) metricsserver.PodOpener {
	return func(ctx context.Context) (io.ReadCloser, error) {
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		items := []any{}
		for _, pod := range pods.Items {
			if pod.Status.Phase == v1.PodRunning {
				items = append(items, map[string]any{
					"metadata":  map[string]any{"namespace": pod.Namespace, "name": pod.Name},
					"timestamp": metav1.Now(),
					"window":    "1s",
					"containers": []any{
						map[string]any{"name": "c", "usage": map[string]any{"cpu": pod.Annotations["uses"], "memory": "64Mi"}},
					},
				})
			}
		}
		raw, err := json.Marshal(map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items})
		return io.NopCloser(bytes.NewReader(raw)), err
	}
}

// newPod returns a pod with a request and a usage of CPU. It is bound if the node is not empty.
func newPod(name, node, requests, uses string) *v1.Pod {
	pod := testcluster.RunningPod(name, node, requests, "64Mi")
	pod.Annotations = map[string]string{"uses": uses}
	return pod
}

// work creates a pod every two seconds, each of which runs for six seconds, until the test ends.
func work(t *testing.T, client kubernetes.Interface) {
	ctx := t.Context()
	pods := client.CoreV1().Pods("default")
	go func() {
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = pods.Create(ctx, newPod(fmt.Sprint("job-", i), "", "100m", "400m"), metav1.CreateOptions{})
			_ = pods.Delete(ctx, fmt.Sprint("job-", i-3), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
}

// TestCluster watches a cluster of two nodes for minutes that are recorded as hours. One node is busy with little requested, the other
// one idle with much requested: kube-scheduler overloads the busy node. The shadow finds it, with rights to read only, and the same
// difference as a comparison over the same recordings.
func TestCluster(t *testing.T) {
	cp, config := plane.Start(t, controlplane.Options{})
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	for _, name := range []string{"busy", "idle"} {
		node := schedtest.Node(name, "cpu", "2", "memory", "8Gi", "pods", "110")
		testcluster.Create(t, client.CoreV1().Nodes(), node)
	}
	for _, pod := range []*v1.Pod{newPod("hot", "busy", "50m", "1700m"), newPod("cold", "idle", "1200m", "10m")} {
		testcluster.Create(t, client.CoreV1().Pods("default"), pod)
	}
	startScheduler(t, cp)
	work(t, client)

	readOnly := access(t, cp, client)
	reader, err := kubernetes.NewForConfig(readOnly)
	must.Succeed(t, err)
	usage, err := metricsserver.NewPods(metricsAPI(client))
	must.Succeed(t, err)
	log, folder := &program.Output{}, t.TempDir()
	o := &options{
		folder: folder,
		every:  10 * time.Minute,
		days:   7,
		keep:   30,
		run:    whatif.RunLowPriority,
		output: base.Output{Format: base.FormatTable},
	}
	s := &server{
		options: o, out: log, wake: make(chan struct{}, 1),
		settings: &record.FollowConfig{
			Folder: folder, Step: time.Minute, Rotate: o.every, MaxBytes: 1 << 30, Client: reader, Usage: usage,
			Speed: speed, Epoch: time.Now().Add(-time.Minute), Log: func(line string) { fmt.Fprintln(log, line) },
			Objects: func(ctx context.Context) (*record.Cluster, error) {
				return record.ReadCluster(ctx, readOnly, record.ReadOptions{Areas: []string{kinds.AreaCluster}})
			},
		},
	}
	candidates, err := read("candidate", "predicted")
	must.Succeed(t, err)
	current, err := o.current(t.Context(), reader, s.settings.Log)
	if err != nil || current.Name != "default" {
		t.Fatalf("profile %s, error %v", current.Name, err)
	}
	s.profiles = append([]engine.NamedConfig{current}, candidates...)
	if s.store, err = shadow.OpenStore(folder, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, listener) }()
	eventually.TrueWithin(
		t,
		10*time.Minute,
		time.Second,
		"the shadow does not find the difference",
		log,
		func(context.Context) (bool, error) {
			r := shadow.NewReport(s.store.Windows(time.Time{}), time.Now().AddDate(0, 0, -7), time.Now())
			return len(r.Verdicts) == 1 && r.Verdicts[0].Answer == result.Better, nil
		},
	)
	for path, want := range map[string]string{
		"/": "node minutes of overload, and caused", "/metrics": `plimsoll_shadow_verdict{candidate="predicted"} 1`, "/report.json": `"answer":"better"`,
	} {
		if body, err := program.Get(t.Context(), "http://"+listener.Addr().String()+path); err != nil || !strings.Contains(body, want) {
			t.Errorf("%s has no %q: %s, %v", path, want, body, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Contains(text, "forbidden") {
		t.Errorf("the rights are not sufficient: %s", text)
	}
	r := shadow.NewReport(s.store.Windows(time.Time{}), time.Now().AddDate(0, 0, -7), time.Now())
	if o := r.Scenario.Measured.Overloaded; len(o.Nodes) != 1 || o.Nodes[0].Name != "busy" || len(o.Workloads) == 0 {
		t.Errorf("%+v", o)
	}
	for _, w := range s.store.Windows(time.Time{}) {
		got, want := w.Candidates[0].Run.OverloadMinutes-w.Current.Run.OverloadMinutes, compared(t, filepath.Join(folder, w.File))
		if got != want {
			t.Errorf("%s: a difference of %g node minutes, plimsoll compare has %g", w.File, got, want)
		}
	}
}

// compared returns the difference of the overload that plimsoll compare finds over a recording.
func compared(t *testing.T, file string) float64 {
	t.Helper()
	plan, err := compare.NewPlan(t.Context(), compare.Options{
		Profiles: []string{"default", "predicted"},
		Source:   generate.Source{Source: recording.Source{Recording: file}},
		Metrics:  result.Metrics{IntervalSeconds: 60, DelaySeconds: 60, WindowSeconds: 900},
		Seed:     1,
		Seeds:    1,
		Warn:     func(string) {},
	})
	must.Succeed(t, err)
	r, err := plan.Run(t.Context(), whatif.RunLowPriority)
	must.Succeed(t, err)
	return r.Scenario.Profiles[1].Figures["overloadMinutes"].Difference.Mean
}
