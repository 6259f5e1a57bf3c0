package integration

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// playground starts the demo without scenarios of its controllers and returns the address of its page and
// its kubeconfig.
func playground(t *testing.T) (page, kubeconfig string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binaries.demo, "--scenario", "limits")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_, _ = io.Copy(io.Discard, stderr)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo exited with %v", err)
		}
	})
	var log strings.Builder
	lines, isReady := bufio.NewScanner(stderr), false
	for kubeconfig == "" && lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		isReady = isReady || strings.Contains(lines.Text(), "the cluster runs until you press Ctrl-C")
		if match := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)`).FindString(lines.Text()); match != "" {
			page = match
		}
		if match := regexp.MustCompile(`KUBECONFIG=(\S+)`).FindStringSubmatch(lines.Text()); match != nil && isReady {
			kubeconfig = match[1]
		}
	}
	if page == "" || kubeconfig == "" {
		t.Fatalf("no page or no kubeconfig in\n%s", &log)
	}
	return page, kubeconfig
}

// decision matches the decision on a pod on the live page, and score one node in it.
var (
	decision = `(?s)<h3>%s <span[^>]*>[^<]*</span></h3>\s*<p><b>%s</b> selects <b>([^<]*)</b>.*?</p>\s*<p>(.*?)</p>`
	score    = regexp.MustCompile(`<span class="chip[^"]*">(\S+) (\d+)</span>`)
)

// TestToolsOverDemo runs the comparison of the tutorial over the cluster of the demo, and explain for pods of each profile.
func TestToolsOverDemo(t *testing.T) {
	t.Parallel()
	page, kubeconfig := playground(t)
	t.Run("tutorial", func(t *testing.T) { compareAsInTutorial(t, kubeconfig) })
	t.Run("explain", func(t *testing.T) { explainAsOnPage(t, page, kubeconfig) })
}

// explainAsOnPage expects that explain has the scores of the live page for pods of the scheduler's
// profiles: it finds their configuration and the load source in the cluster.
func explainAsOnPage(t *testing.T, page, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for i, profile := range []string{"plimsoll-scheduler", v1.DefaultSchedulerName, "plimsoll-limits", "plimsoll-low-risk"} {
		pod := fmt.Sprintf("pod-%d", i)
		createPod(t, client, pod, "", profile, "1", "3")
		pattern := regexp.MustCompile(fmt.Sprintf(decision, pod, profile))
		var shown []string
		eventually.True(t, "the page shows no decision on "+pod, nil, func(ctx context.Context) (bool, error) {
			content, err := program.Get(ctx, page)
			shown = pattern.FindStringSubmatch(content)
			return shown != nil, err
		})
		explained := explainPod(t, "po/"+pod, "--kubeconfig", kubeconfig)
		if explained.Profile.SchedulerName != profile || explained.Profile.Source != "ConfigMap kube-system/plimsoll-scheduler" ||
			explained.Load == nil || explained.Node != shown[1] {
			t.Errorf("%s: explained %+v, the page has node %s", pod, explained, shown[1])
		}
		var totals, wanted []string
		for _, node := range explained.Nodes {
			if node.Feasible { // the page has no scores of other nodes
				totals = append(totals, fmt.Sprint(node.Name, " ", node.Total))
			}
		}
		for _, match := range score.FindAllStringSubmatch(html.UnescapeString(shown[2]), -1) {
			wanted = append(wanted, match[1]+" "+match[2])
		}
		slices.Sort(totals)
		slices.Sort(wanted)
		if len(totals) == 0 || !slices.Equal(totals, wanted) {
			t.Errorf("%s: explained totals %q, on the page %q", pod, totals, wanted)
		}
	}
}

// schedulerConfigMap is the configuration of a scheduler as the chart stores it.
func schedulerConfigMap() *v1.ConfigMap {
	return &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-scheduler", Labels: map[string]string{
			"app.kubernetes.io/part-of": "plimsoll", "app.kubernetes.io/component": "scheduler",
		}},
		Data: map[string]string{"scheduler.yaml": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: custom
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesLimits, weight: 1}]}}
`},
	}
}

// TestExplainLive expects that explain uses the profile of the pod's scheduler from the cluster, warns if it is
// unknown or may not be read, and finds pods by the forms of kubectl and the namespace of the context.
func TestExplainLive(t *testing.T) {
	t.Parallel()
	cp, _, client := startControlPlane(t, controlplane.Options{})
	createNode(t, client, "node-a")
	createPod(t, client, "web", "", "custom", "1", "2")
	admin, restricted := cp.Kubeconfig, allowSnapshots(t, cp, client)

	const unknown = `the profile of scheduler "custom" is unknown: evaluated with profile default-scheduler of built-in profile default`
	if _, stderr := mustPlimsoll(t, "explain", "pod", "web", "--kubeconfig", admin); !strings.Contains(stderr, unknown) {
		t.Errorf("standard error lacks %q:\n%s", unknown, stderr)
	}
	for want, args := range map[string][]string{
		`No scheduler serves custom here: the pod stays pending. With the profile default-scheduler: The scheduler would select node-a`: {
			"explain", "pod", "web",
		},
		"default/web -> node-a":          {"score"},
		"rate 10%, the default: --rate ": {"slack", "plan"},
	} {
		if stdout, _ := mustPlimsoll(t, append(args, "--kubeconfig", admin)...); !strings.Contains(stdout, want) {
			t.Errorf("%v: no %q in\n%s", args, want, stdout)
		}
	}
	if stdout, _ := mustPlimsoll(t, "__complete", "explain", "pod", "--kubeconfig", admin, "w"); !strings.HasPrefix(stdout, "web\n") {
		t.Errorf("the completion of the name of a pod is %q", stdout)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), schedulerConfigMap(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := mustPlimsoll(t, "explain", "pod", "web", "--kubeconfig", admin)
	if !strings.Contains(stdout, "profile custom of ConfigMap default/plimsoll-scheduler\n") || strings.Contains(stderr, "is unknown") {
		t.Errorf("not explained with the stored profile:\n%s%s", stdout, stderr)
	}
	if _, stderr := mustPlimsoll(t, "explain", "pod", "web", "--kubeconfig", restricted); !strings.Contains(stderr, unknown) {
		t.Errorf("without the right to list ConfigMaps, standard error lacks %q:\n%s", unknown, stderr)
	}

	// A context with a namespace in which there is no such pod.
	loaded, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		t.Fatal(err)
	}
	other := loaded.Contexts[loaded.CurrentContext].DeepCopy()
	other.Namespace = "kube-system"
	loaded.Contexts["other"] = other
	file := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*loaded, file); err != nil {
		t.Fatal(err)
	}
	_, stderr, exitCode := runPlimsoll(t, "explain", "pod", "web", "--kubeconfig", file, "--context", "other")
	if exitCode != 1 ||
		!strings.Contains(stderr, `pods "web" not found in namespace "kube-system", or finished; did you mean default/web?`) {
		t.Errorf("exit code %d, %s, want no pod in the namespace of the context", exitCode, stderr)
	}
	mustPlimsoll(t, "explain", "po/web", "-n", "default", "--kubeconfig", file, "--context", "other")
	_, stderr, exitCode = runPlimsoll(t, "explain", "pods", "web", "--kubeconfig", file, "--context", "third")
	if exitCode != 2 || !strings.Contains(stderr, `--context: invalid value "third": must be one of `) {
		t.Errorf("exit code %d, %s, want an error that lists the contexts", exitCode, stderr)
	}
}
