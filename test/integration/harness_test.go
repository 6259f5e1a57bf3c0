// Package integration runs the built programs against the embedded control plane.
package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// binaries are the paths of the built programs, and their folder.
var binaries struct{ folder, scheduler, demo, plimsoll, loadWatcher, controller string }

func TestMain(m *testing.M) {
	controlplane.RunIfChild()
	crlog.SetLogger(klog.NewKlogr())
	// Each warning of an API server once: hundreds of the same would hide why a test failed.
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true}))
	os.Exit(buildAndRun(m))
}

// buildAndRun builds the programs, runs the tests and returns the exit code.
func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "plimsoll-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	packages := []string{
		"./cmd/plimsoll-scheduler", "./cmd/plimsoll-demo", "./cmd/plimsoll", "./cmd/load-watcher",
		"./cmd/plimsoll-controller",
	}
	if err := program.Build(context.Background(), "../..", dir, packages...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binaries.folder = dir
	binaries.scheduler, binaries.demo = filepath.Join(dir, "plimsoll-scheduler"), filepath.Join(dir, "plimsoll-demo")
	binaries.plimsoll, binaries.loadWatcher = filepath.Join(dir, "plimsoll"), filepath.Join(dir, "load-watcher")
	binaries.controller = filepath.Join(dir, "plimsoll-controller")
	return m.Run()
}

// builtOnce returns a function that builds a program in a folder of its own when it is first called, and returns the path.
func builtOnce(name string, build func(ctx context.Context, path string) error) func(*testing.T) string {
	once := sync.OnceValues(func() (string, error) {
		folder := filepath.Join(binaries.folder, "other", name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}
		path := filepath.Join(folder, name)
		return path, build(context.Background(), path)
	})
	return func(t *testing.T) string {
		t.Helper()
		path, err := once()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// runPlimsoll runs the command line tool.
func runPlimsoll(t *testing.T, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	return program.Run(t, binaries.plimsoll, args...)
}

// mustPlimsoll runs the command line tool and fails the test unless its exit code is 0.
func mustPlimsoll(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, exitCode := runPlimsoll(t, args...)
	if exitCode != 0 {
		t.Fatalf("plimsoll %s: exit code %d\n%s", strings.Join(args, " "), exitCode, stderr)
	}
	return stdout, stderr
}

// writeFile writes a temporary file and returns its path.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadFile writes a file with the current load of some nodes and returns its path.
func loadFile(t *testing.T, nodes map[string]load.Node) string {
	t.Helper()
	var out bytes.Buffer
	if err := wire.Encode(&out, load.Reading{Source: "test", Time: time.Now(), Window: 15 * time.Minute, Nodes: nodes}); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, out.String())
}

// startControlPlane starts a control plane for the duration of the test and returns it with
// administrator access.
func startControlPlane(t *testing.T, options controlplane.Options) (*controlplane.ControlPlane, *rest.Config, *kubernetes.Clientset) {
	t.Helper()
	cp, config := plane.Start(t, options)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return cp, config, client
}

// kubeconfigOf writes a kubeconfig of a user and returns its path.
func kubeconfigOf(t *testing.T, cp *controlplane.ControlPlane, user string, groups ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cp.WriteKubeconfig(path, user, groups...); err != nil {
		t.Fatal(err)
	}
	return path
}

// createNode creates a node of 8 CPUs and 32Gi.
func createNode(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	if _, err := client.CoreV1().Nodes().Create(t.Context(), readyNode(name, "8", "32Gi", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createPod creates a pod with a CPU request and limit, and 1Gi of memory for both.
func createPod(t *testing.T, client kubernetes.Interface, name, node, schedulerName, request, limit string) {
	t.Helper()
	list := func(cpu string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Gi")}
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: schedulerName, Containers: []v1.Container{{
			Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: list(request), Limits: list(limit)},
		}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// readyNode returns a node, which the embedded control plane makes Ready.
func readyNode(name, cpu, memory string, labels map[string]string) *v1.Node {
	node := schedtest.Node(name, "cpu", cpu, "memory", memory, "pods", "110")
	node.Labels = labels
	return node
}

// runningPod returns a pod of a node, which the embedded control plane makes Running.
func runningPod(name, node, cpu, memory string) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{
			Name: "c", Image: "i",
			Resources: v1.ResourceRequirements{Requests: requests},
		}}},
	}
}
