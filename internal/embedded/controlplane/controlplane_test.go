package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestMain(m *testing.M) {
	RunIfChild()
	os.Exit(m.Run())
}

func start(t *testing.T) (*ControlPlane, kubernetes.Interface) {
	t.Helper()
	began := time.Now()
	cp, err := Start(t.Context(), Options{})
	must.Succeed(t, err)
	t.Cleanup(cp.Stop)
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	config, err := cp.Config("test", "system:masters")
	must.Succeed(t, err)
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	return cp, client
}

var template = v1.PodTemplateSpec{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
	Spec:       v1.PodSpec{NodeName: "node", Containers: []v1.Container{{Name: "c", Image: "i"}}},
}

// TestControlPlane checks one control plane, and expects that its directory and its port are released when the parent exits.
func TestControlPlane(t *testing.T) {
	cp, client := start(t)
	t.Run("workloads", func(t *testing.T) { runWorkloads(t, client) })
	t.Run("CRDs", func(t *testing.T) { installTwice(t, cp) })
	expectReleased(t, cp, func() { _ = cp.stdin.Close() })
}

// TestKilledServers expects that the directory and the port are released if the servers are killed. Stop may be called more than once.
func TestKilledServers(t *testing.T) {
	cp, _ := start(t)
	expectReleased(t, cp, func() { cp.child.Kill(); cp.Stop(); cp.Stop() })
}

// runWorkloads expects that nodes become Ready, deployments available and jobs complete, and that deleted pods disappear.
func runWorkloads(t *testing.T, client kubernetes.Interface) {
	ctx := t.Context()
	if version, err := client.Discovery().ServerVersion(); err != nil || !strings.HasPrefix(version.GitVersion, "v1.37.") {
		t.Errorf("version %v, error %v, want v1.37.x", version, err)
	}
	if _, err := client.CoreV1().Nodes().Create(
		ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, metav1.CreateOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the node is not Ready", nil, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, "node", metav1.GetOptions{})
		return err == nil && len(node.Status.Conditions) == 1 && node.Status.Conditions[0].Status == v1.ConditionTrue, err
	})

	two := int32(2)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &two,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template,
		},
	}
	if _, err := client.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the deployment is not available", nil, func(ctx context.Context) (bool, error) {
		d, err := client.AppsV1().Deployments("default").Get(ctx, "d", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == two, err
	})

	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "j"},
		Spec:       batchv1.JobSpec{Completions: &two, Parallelism: &two, Template: template},
	}
	job.Spec.Template.Spec.RestartPolicy = v1.RestartPolicyNever
	job.Spec.Template.Annotations = map[string]string{RunForAnnotation: "10ms"}
	if _, err := client.BatchV1().Jobs("default").Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the job is not complete", nil, func(ctx context.Context) (bool, error) {
		j, err := client.BatchV1().Jobs("default").Get(ctx, "j", metav1.GetOptions{})
		return err == nil && j.Status.CompletionTime != nil, err
	})

	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "job-name=j"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("no pods of the job: %v", err)
	}
	name := pods.Items[0].Name
	must.Succeed(t, client.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{}))
	eventually.True(t, "the deleted pod still exists", nil, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// installTwice expects that a CRD that exists is no error.
func installTwice(t *testing.T, cp *ControlPlane) {
	config, err := cp.Config("test", "system:masters")
	must.Succeed(t, err)
	manifest, err := os.ReadFile("../../../config/crd/plimsoll.dev_resourceslacks.yaml")
	must.Succeed(t, err)
	for range 2 {
		if err := InstallCRDs(t.Context(), config, manifest); err != nil {
			t.Error(err)
		}
	}
}

// expectReleased expects that the directory and the port are released when a control plane is stopped.
func expectReleased(t *testing.T, cp *ControlPlane, stop func()) {
	t.Helper()
	u, err := url.Parse(cp.Address())
	if err != nil || u.Hostname() != "127.0.0.1" {
		t.Fatalf("serves at %q: %v", cp.Address(), err)
	}
	stop()
	<-cp.Exited()
	eventually.True(t, "the directory still exists", nil, func(context.Context) (bool, error) {
		_, err := os.Stat(cp.Dir)
		return errors.Is(err, fs.ErrNotExist), nil
	})
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		_ = conn.Close()
		t.Error("the port is still served")
	}
}

// TestInvalidFlag expects an error that names the flag, and no files left.
func TestInvalidFlag(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), Options{APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %v does not name the flag", err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
