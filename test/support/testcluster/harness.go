package testcluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// Get sends a request and decodes the JSON response, unless into is nil.
func Get(ctx context.Context, address string, into any) error {
	body, err := program.Get(ctx, address)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal([]byte(body), into)
}

// TextOf prints a text as it is when a test fails.
type TextOf struct{ Text *string }

// String returns the text.
func (t TextOf) String() string { return *t.Text }

// Main runs the tests of a package and returns the exit code.
func Main(m *testing.M) int {
	crlog.SetLogger(klog.NewKlogr())
	// Each warning of an API server once: hundreds of the same would hide why a test failed.
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true}))
	return plane.Main(m)
}

// RunPlimsoll runs the command line tool.
func RunPlimsoll(t *testing.T, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	return program.Run(t, program.Path(t, "plimsoll"), args...)
}

// MustPlimsoll runs the command line tool and fails the test unless its exit code is 0.
func MustPlimsoll(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, exitCode := RunPlimsoll(t, args...)
	if exitCode != 0 {
		t.Fatalf("plimsoll %s: exit code %d\n%s", strings.Join(args, " "), exitCode, stderr)
	}
	return stdout, stderr
}

// WriteFile writes a temporary file and returns its path.
func WriteFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// LoadFile writes a file with the current load of some nodes and returns its path.
func LoadFile(t *testing.T, nodes map[string]load.Node) string {
	t.Helper()
	var out bytes.Buffer
	must.Succeed(t, wire.Encode(&out, load.Reading{Source: "test", Time: time.Now(), Window: 15 * time.Minute, Nodes: nodes}))
	return WriteFile(t, out.String())
}

// StartControlPlane returns a control plane with the CRDs of some files, for the duration of the test, and administrator access.
func StartControlPlane(t *testing.T, crds ...string) (*controlplane.ControlPlane, *rest.Config, *kubernetes.Clientset) {
	t.Helper()
	cp, config := plane.Start(t, controlplane.Options{}, crds...)
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	return cp, config, client
}

// KubeconfigOf writes a kubeconfig of a user and returns its path.
func KubeconfigOf(t *testing.T, cp *controlplane.ControlPlane, user string, groups ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, cp.WriteKubeconfig(path, user, groups...))
	return path
}

// creator is a client of one kind of objects, such as the client of nodes.
type creator[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// Create creates an object with the client of its kind.
func Create[T any](t *testing.T, client creator[T], object T) {
	t.Helper()
	_, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	must.Succeed(t, err)
}

// CreateNode creates a node of 8 CPUs and 32Gi.
func CreateNode(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	Create(t, client.CoreV1().Nodes(), ReadyNode(name, "8", "32Gi", nil))
}

// CreatePod creates a pod with a CPU request and limit, and 1Gi of memory for both.
func CreatePod(t *testing.T, client kubernetes.Interface, name, node, schedulerName, request, limit string) {
	t.Helper()
	list := func(cpu string) v1.ResourceList { return schedtest.Amounts("cpu", cpu, "memory", "1Gi") }
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: schedulerName, Containers: []v1.Container{{
			Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: list(request), Limits: list(limit)},
		}}},
	}
	Create(t, client.CoreV1().Pods("default"), pod)
}

// ReadyNode returns a node, which the embedded control plane makes Ready.
func ReadyNode(name, cpu, memory string, labels map[string]string) *v1.Node {
	node := schedtest.Node(name, "cpu", cpu, "memory", memory, "pods", "110")
	node.Labels = labels
	return node
}

// RunningPod returns a pod of a node, which the embedded control plane makes Running.
func RunningPod(name, node, cpu, memory string) *v1.Pod {
	pod := schedtest.Pod(name, node, schedtest.Amounts("cpu", cpu, "memory", memory), nil)
	pod.Spec.Containers[0].Image = "i"
	return pod
}

// StartLoadWatcher starts load-watcher and returns its port and process.
func StartLoadWatcher(t *testing.T, args ...string) (port int, watcher *program.Process) {
	t.Helper()
	port = program.FreePort(t)
	return port, program.Start(t, program.Path(t, "load-watcher"), append(args, fmt.Sprintf("--listen=127.0.0.1:%d", port))...)
}

// SchedulerPages returns a function that reads pages of a scheduler's secure port as an administrator.
func SchedulerPages(t *testing.T, config *rest.Config, port int) func(ctx context.Context, path string) (string, error) {
	t.Helper()
	admin, err := tls.X509KeyPair(config.CertData, config.KeyData)
	must.Succeed(t, err)
	return func(ctx context.Context, path string) (string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{admin}}}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
		if err != nil {
			return "", err
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s: %s", response.Status, body)
		}
		return string(body), err
	}
}

// invalidValue matches the value in the message of a violated rule. API servers older than 1.37 name its type or nothing in place of it.
var invalidValue = regexp.MustCompile(`Invalid value: ("\w*"|\d+): `)

// WithoutValue returns a message without the value that is invalid.
func WithoutValue(message string) string {
	return invalidValue.ReplaceAllString(message, "Invalid value: ")
}

// Explanation contains the JSON fields of explain that tests read.
type Explanation struct {
	Node, Selected, Reason string
	Stays                  bool
	Profile                struct{ SchedulerName, Source string }
	Load                   *struct{ Source string }
	Nodes                  []struct {
		Name     string
		Feasible bool
		Total    int64
	}
}

// ExplainPod returns what explain pod prints about a pod.
func ExplainPod(t *testing.T, pod string, args ...string) Explanation {
	t.Helper()
	stdout, _ := MustPlimsoll(t, append([]string{"explain", "pod", pod, "-o", "json"}, args...)...)
	var e Explanation
	if err := json.Unmarshal([]byte(stdout), &e); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return e
}
