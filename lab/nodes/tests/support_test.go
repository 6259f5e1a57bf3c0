//go:build nodes

package tests

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// Intervals of the scheduler's load. maxLoadAge is more than two intervals of metrics-server.
const (
	pollInterval = "2s"
	loadWindow   = "60s"
	maxLoadAge   = 40 * time.Second
)

// schedulerConfiguration returns the configuration of a scheduler with the default profile and the published ones that read load, from the
// metrics-server.
func schedulerConfiguration() (string, error) {
	profiles := []any{map[string]any{"schedulerName": "default-scheduler"}}
	for _, name := range []string{"predicted", "low-risk"} {
		raw, err := os.ReadFile(filepath.Join(project, "examples", "profiles", name+".yaml"))
		if err != nil {
			return "", err
		}
		var file struct {
			Profiles []struct {
				SchedulerName string `json:"schedulerName"`
				Plugins       any    `json:"plugins"`
				PluginConfig  []struct {
					Name string         `json:"name"`
					Args map[string]any `json:"args"`
				} `json:"pluginConfig"`
			} `json:"profiles"`
		}
		if err := yaml.Unmarshal(raw, &file); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range file.Profiles[0].PluginConfig {
			delete(c.Args, "watcherAddress")
			c.Args["pollInterval"], c.Args["maxLoadAge"] = pollInterval, maxLoadAge.String()
			c.Args["metricProvider"] = map[string]any{"type": "KubernetesMetricsServer", "window": loadWindow}
		}
		profiles = append(profiles, file.Profiles[0])
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"leaderElection":   map[string]any{"leaderElect": false},
		"clientConnection": map[string]any{"kubeconfig": "KUBECONFIG", "qps": 1000, "burst": 2000},
		"profiles":         profiles,
	})
	return string(text), err
}

// newPod returns a pod of the program work in a pool, which uses what its arguments say.
func newPod(name, pool string, args ...string) *v1.Pod {
	second, none := int64(1), false
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: v1.PodSpec{
			NodeSelector: map[string]string{"pool": pool}, TerminationGracePeriodSeconds: &second, DNSPolicy: v1.DNSDefault,
			AutomountServiceAccountToken: &none,
			Containers:                   []v1.Container{{Name: "main", Image: realnodes.Image, ImagePullPolicy: v1.PullNever, Args: args}},
		},
	}
}

// request sets the CPU request of a pod in millicores.
func request(pod *v1.Pod, millicores int64) *v1.Pod {
	pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(millicores, resource.DecimalSI)}
	return pod
}

// create creates a pod, which is deleted at the end of the test.
func create(t *testing.T, pod *v1.Pod) {
	t.Helper()
	_, err := cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must.Succeed(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = cluster.Client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
	})
}

// retry repeats an attempt until it returns no error. After the limit the test fails with the last error.
func retry(t *testing.T, limit time.Duration, what string, attempt func(ctx context.Context) error) {
	t.Helper()
	var last error
	eventually.TrueWithin(t, limit, 200*time.Millisecond, what, printer(func() string { return fmt.Sprint(last) }),
		func(ctx context.Context) (bool, error) {
			err := attempt(ctx)
			if ctx.Err() == nil {
				last = err // not the error of a canceled request
			}
			return err == nil, nil
		})
}

// await waits until a pod meets a condition, and returns it.
func await(t *testing.T, name, what string, meets func(pod *v1.Pod) bool) *v1.Pod {
	t.Helper()
	var pod *v1.Pod
	retry(t, eventually.Limit, "waiting until pod "+name+" "+what, func(ctx context.Context) (err error) {
		pod, err = cluster.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !meets(pod) {
			err = errors.New(podStatus(pod))
		}
		return err
	})
	return pod
}

// printer prints what it returns.
type printer func() string

// String implements fmt.Stringer.
func (p printer) String() string { return p() }

func podStatus(pod *v1.Pod) string {
	text, err := yaml.Marshal(pod.Status)
	return fmt.Sprintf("node %q\n%s%v", pod.Spec.NodeName, text, err)
}

func isRunning(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodRunning }

// isUnschedulable reports whether the scheduler has found no node for the pod.
func isUnschedulable(pod *v1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse && condition.Reason == v1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// nodeFor creates a pod with a request, returns the node that a scheduler selects for it, and deletes it.
func nodeFor(t *testing.T, name, pool, schedulerName string, millicores int64) string {
	t.Helper()
	pod := request(newPod(name, pool), millicores)
	pod.Spec.SchedulerName = schedulerName
	create(t, pod)
	node := await(t, name, "has a node", func(pod *v1.Pod) bool { return pod.Spec.NodeName != "" }).Spec.NodeName
	remove(t, name)
	return node
}

// remove deletes a pod and waits until it is gone.
func remove(t *testing.T, name string) {
	t.Helper()
	none := int64(0)
	must.Succeed(t, cluster.Client.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &none}))
	eventually.True(t, "waiting until pod "+name+" is gone", nil, func(ctx context.Context) (bool, error) {
		_, err := cluster.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err != nil, nil
	})
}

// plimsoll runs a command of plimsoll with a kubeconfig and returns its standard output.
func plimsoll(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.Program("plimsoll"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
	stdout, stderr, code := program.RunCommand(t, command)
	if code != 0 {
		t.Fatalf("plimsoll %q: exit code %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

// metrics returns the metrics of a server by name and labels, such as go_goroutines or plimsoll_load_nodes{source="Prometheus"}.
func metrics(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	// The certificate of the scheduler is signed by itself.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	found := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		last := strings.LastIndexByte(line, ' ')
		if value, err := strconv.ParseFloat(line[last+1:], 64); err == nil {
			found[line[:max(last, 0)]] = value
		}
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return found, nil
}

// awaitMetrics waits until the metrics of the scheduler meet a condition.
func awaitMetrics(t *testing.T, what string, meets func(m map[string]float64) bool) {
	t.Helper()
	retry(t, eventually.Limit, "waiting until the metrics of the scheduler have "+what, func(ctx context.Context) error {
		found, err := metrics(ctx, scheduler.Address)
		if err != nil || meets(found) {
			return err
		}
		var text strings.Builder
		for name, value := range found {
			if strings.HasPrefix(name, "plimsoll_load") || strings.HasPrefix(name, "plimsoll_pod_usage") {
				fmt.Fprintln(&text, name, value)
			}
		}
		return errors.New(text.String())
	})
}

// logOf returns the log of a server of the cluster.
func logOf(name string) string {
	raw, _ := os.ReadFile(filepath.Join(cluster.Dir, name+".log"))
	return string(raw)
}

// endOf returns the last lines of the log of a server.
func endOf(name string) string {
	lines := strings.SplitAfter(logOf(name), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "")
}

// between fails the test unless a value is in a range.
func between(t *testing.T, what string, value, low, high float64) {
	t.Helper()
	if !(value >= low && value <= high) {
		t.Errorf("%s: %.4g, want %.4g to %.4g", what, value, low, high)
	}
}
