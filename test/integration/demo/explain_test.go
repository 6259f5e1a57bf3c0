package demo

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// playground starts the demo without scenarios of its controllers and returns the address of its page and
// its kubeconfig.
func playground(t *testing.T) (page, kubeconfig string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program.Path(t, "plimsoll-demo"), "--scenario", "limits")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	stderr, err := cmd.StderrPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
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
	t.Run("tutorial after the commands", func(t *testing.T) {
		keepSlack(t, kubeconfig)
		compareAsInTutorial(t, kubeconfig)
	})
}

// keepSlack creates the policy that the demo advises to create, and waits until the autoscaler has added its node.
func keepSlack(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must.Succeed(t, err)
	api, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	must.Succeed(t, err)
	policy := testcluster.PolicyOf("general", "10%", testcluster.InPool("general"))
	must.Succeed(t, api.Create(t.Context(), policy))
	eventually.TrueWithin(t, 2*time.Minute, time.Second, "the slack is not available", nil, func(ctx context.Context) (bool, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(policy), policy)
		return meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionReady), err
	})
}

// explainAsOnPage expects that explain has the scores of the live page for pods of the scheduler's
// profiles: it finds their configuration and the load source in the cluster.
func explainAsOnPage(t *testing.T, page, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must.Succeed(t, err)
	typed, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	for i, profile := range []string{"plimsoll-scheduler", v1.DefaultSchedulerName, "plimsoll-limits", "plimsoll-low-risk"} {
		pod := fmt.Sprintf("pod-%d", i)
		pods := typed.CoreV1().Pods(v1.NamespaceDefault)
		// Before its gate is removed, explain reads the cluster that the scheduler then decides by: the load that the demo serves does not
		// change with the pod.
		gated := schedtest.Pod(pod, "", schedtest.Amounts("cpu", "1", "memory", "1Gi"), schedtest.Amounts("cpu", "3", "memory", "1Gi"))
		gated.Spec.Containers[0].Image = "i"
		gated.Spec.SchedulerName = profile
		gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "plimsoll.example/explained"}}
		_, err := pods.Create(t.Context(), gated, metav1.CreateOptions{})
		must.Succeed(t, err)
		explained := testcluster.ExplainPod(t, "po/"+pod, "--kubeconfig", kubeconfig)
		_, err = pods.Patch(t.Context(), pod, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
		must.Succeed(t, err)
		pattern := regexp.MustCompile(fmt.Sprintf(decision, pod, profile))
		var shown []string
		eventually.True(t, "the page shows no decision on "+pod, nil, func(ctx context.Context) (bool, error) {
			content, err := program.Get(ctx, page)
			shown = pattern.FindStringSubmatch(content)
			return shown != nil, err
		})
		if explained.Profile.SchedulerName != profile || explained.Profile.Source != "ConfigMap kube-system/plimsoll-scheduler" ||
			explained.Load == nil || explained.Selected != shown[1] {
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
		// PredictedUtilization knows a longer history in the scheduler: how long the load of nodes has differed from requests.
		if len(totals) == 0 || profile != "plimsoll-scheduler" && !slices.Equal(totals, wanted) {
			t.Errorf("%s: explained totals %q, on the page %q", pod, totals, wanted)
		}
	}
}
