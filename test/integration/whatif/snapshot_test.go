package whatif

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// snapshotter is the user of the ServiceAccount for snapshots, which may only list.
const snapshotter = "system:serviceaccount:default:plimsoll-snapshot"

// allowSnapshots creates the ServiceAccount and the RBAC rules of the examples, waits until they apply, and
// returns the kubeconfig of the ServiceAccount.
func allowSnapshots(t *testing.T, cp *controlplane.ControlPlane, client kubernetes.Interface) string {
	t.Helper()
	groups := []string{"system:serviceaccounts", "system:authenticated"}
	for _, rule := range plane.ApplyRights(t, client, "../../../examples/snapshot/rbac.yaml", snapshotter, groups) {
		if !slices.Equal(rule.Verbs, []string{"list"}) || slices.Contains(rule.Resources, "secrets") ||
			slices.Contains(rule.Resources, "configmaps") {
			t.Errorf("rule %v: want only verb list, no secrets and no configmaps", rule)
		}
	}
	return testcluster.KubeconfigOf(t, cp, snapshotter, groups...)
}

// manyPods is more than two pages of a list.
const manyPods = 1205

// createManyPods creates nodes with pods that contain confidential values, and waits until the
// pods run.
func createManyPods(t *testing.T, client kubernetes.Interface, nodes int) {
	t.Helper()
	for i := range nodes {
		testcluster.CreateNode(t, client, fmt.Sprintf("node-%02d", i))
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i := range manyPods {
		group.Go(func() error {
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name:        fmt.Sprintf("pod-%04d", i),
					Labels:      map[string]string{"app": "web"},
					Annotations: map[string]string{"note": "hush-hush"},
				},
				Spec: v1.PodSpec{NodeName: fmt.Sprintf("node-%02d", i%nodes), Containers: []v1.Container{{
					Name: "c", Image: "i", Args: []string{"hush-hush"}, Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hush-hush"}},
					Resources: v1.ResourceRequirements{
						Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("50m"), v1.ResourceMemory: resource.MustParse("16Mi")},
					},
				}}},
			}
			_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			return err
		})
	}
	must.Succeed(t, group.Wait())
	eventually.True(t, "some pods are not running", nil, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Running", Limit: 1})
		return err == nil && len(list.Items) == 0, err
	})
}

// A ServiceAccount that may only list takes a snapshot of more than two pages of pods. The
// snapshot is complete and reproducible, and explain has the same result over the snapshot
// as over the cluster.
func TestSnapshot(t *testing.T) {
	cp, config, _ := testcluster.StartControlPlane(t, testcluster.ProjectCRDs(t)...)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hush-hush"}, StringData: map[string]string{"hush-hush": "hush-hush"}}
	testcluster.Create(t, client.CoreV1().Secrets("default"), secret)
	createManyPods(t, client, 12)
	testcluster.CreatePod(t, client, "waits", "", "", "1", "2")
	kubeconfig := allowSnapshots(t, cp, client)
	// Nodes 05 to 11 have the fewest pods; node-05 has a high load.
	busy := testcluster.LoadFile(t, map[string]load.Node{"node-05": {CPU: load.Utilization{Mean: 0.95, StdDev: 0.01}, HasCPU: true}})

	dir := t.TempDir()
	take := func(name string, args ...string) *recording.Recording {
		t.Helper()
		path := filepath.Join(dir, name)
		_, stderr := testcluster.MustPlimsoll(
			t, append([]string{"snapshot", "-o", path, "--kubeconfig", kubeconfig, "--provider", "File", "--address", busy}, args...)...,
		)
		// A file has no usage of pods.
		if strings.Count(stderr, "warning: ") != 1 || !strings.Contains(stderr, "warning: usage of pods: ") ||
			!strings.Contains(stderr, "continuing without it: install metrics-server, use --provider Prometheus") {
			t.Errorf("%s: warnings:\n%s", name, stderr)
		}
		s, err := recording.Open(path)
		must.Succeed(t, err)
		return s
	}
	first, second := take("first.ndjson.gz"), take("second.ndjson.gz")
	if n := len(first.List("pods")); n != manyPods+1 {
		t.Errorf("%d pods, want %d", n, manyPods+1)
	}
	if n := len(first.List("nodes")); n != 12 {
		t.Errorf("%d nodes, want 12", n)
	}
	second.About = first.About
	if a, b := bytesOf(t, first), bytesOf(t, second); !bytes.Equal(a, b) {
		t.Errorf("a second snapshot of the same cluster differs:\n%s", cmp.Diff(textsOf(first), textsOf(second)))
	}
	checkPrivacy(t, first, take("redacted.ndjson.gz", "--redact"))

	scheduler := testcluster.WriteFile(t, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - {name: NodeResourcesAllocatable, weight: 1}
      - {name: NodeResourcesLimits, weight: 1}
      - {name: LowRiskOverCommitment, weight: 1}
`)
	// explain over the cluster, explain over the snapshot, and score agree.
	live := testcluster.ExplainPod(t, "default/waits", "--kubeconfig", kubeconfig, "--provider", "File", "--address", busy,
		"--config", scheduler)
	restored := testcluster.ExplainPod(t, "default/waits", "--recording", filepath.Join(dir, "first.ndjson.gz"), "--config", scheduler)
	if diff := cmp.Diff(live, restored); diff != "" {
		t.Errorf("explained live and over the snapshot (-live +snapshot):\n%s", diff)
	}
	stdout, _ := testcluster.MustPlimsoll(
		t,
		"score",
		"--recording",
		filepath.Join(dir, "first.ndjson.gz"),
		"-o",
		"json",
		"--config",
		scheduler,
	)
	var scored struct{ Pods []testcluster.Explanation }
	must.Succeed(t, json.Unmarshal([]byte(stdout), &scored))
	if len(scored.Pods) != 1 || scored.Pods[0].Selected != live.Selected || !cmp.Equal(scored.Pods[0].Nodes, live.Nodes) {
		t.Errorf("score %+v, explain %+v", scored.Pods, live)
	}
	if live.Selected != "node-06" || live.Load == nil {
		t.Errorf("selected %s, want node-06, which has the fewest pods and no high load: %s", live.Selected, live.Reason)
	}
	checkRefusals(t, cp, kubeconfig, filepath.Join(dir, "first.ndjson.gz"))
}

func bytesOf(t *testing.T, s *recording.Recording) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Succeed(t, s.Write(&out))
	return out.Bytes()
}

// textsOf returns the objects of a snapshot.
func textsOf(s *recording.Recording) (texts []string) {
	for _, object := range s.Objects {
		texts = append(texts, string(object.JSON))
	}
	return texts
}

// checkPrivacy fails if a snapshot contains confidential values or the redacted one contains
// names.
func checkPrivacy(t *testing.T, plain, redacted *recording.Recording) {
	t.Helper()
	for _, object := range plain.Objects {
		if bytes.Contains(object.JSON, []byte("hush-hush")) || bytes.Contains(object.JSON, []byte("manager")) {
			t.Fatalf("confidential value in %s", object.JSON)
		}
	}
	for _, object := range redacted.Objects {
		for _, name := range []string{"hush-hush", `"pod-0`, `"node-0`, `"node-1`, `"web"`, `"waits"`} {
			if bytes.Contains(object.JSON, []byte(name)) {
				t.Fatalf("%s in %s", name, object.JSON)
			}
		}
	}
	if !redacted.About.Redacted || plain.About.Redacted || len(redacted.List("pods")) != len(plain.List("pods")) {
		t.Errorf("redacted %+v", redacted.About)
	}
}

// checkRefusals fails if an existing snapshot is overwritten, or if a failed snapshot leaves
// files.
func checkRefusals(t *testing.T, cp *controlplane.ControlPlane, kubeconfig, taken string) {
	t.Helper()
	before, err := os.ReadFile(taken)
	must.Succeed(t, err)
	_, stderr, exitCode := testcluster.RunPlimsoll(t, "snapshot", "-o", taken, "--kubeconfig", kubeconfig)
	if exitCode != 2 || !strings.Contains(stderr, "already exists; --force replaces it") {
		t.Errorf("exit code %d, stderr %s", exitCode, stderr)
	}
	dir := t.TempDir()
	unprivileged := testcluster.KubeconfigOf(t, cp, "unprivileged")
	_, stderr, exitCode = testcluster.RunPlimsoll(t, "snapshot", "-o", filepath.Join(dir, "s.ndjson.gz"), "--kubeconfig", unprivileged)
	if exitCode != 1 || !strings.Contains(stderr, "reading pods: ") {
		t.Errorf("exit code %d, stderr %s, want an error of reading pods", exitCode, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v (%v)", left, err)
	}
	if after, err := os.ReadFile(taken); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the snapshot has changed (%v)", err)
	}
	_, stderr, exitCode = testcluster.RunPlimsoll(t, "explain", "pod", "default/wait", "--recording", taken)
	if exitCode != 1 || !strings.Contains(stderr, "did you mean default/waits?") {
		t.Errorf("exit code %d, stderr %s", exitCode, stderr)
	}
}
