//go:build foreign

package servers

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// TestDemoPlayground expects that the demo serves the live page after its scenarios until it is interrupted, that the page does not show
// the decisions on the demo's own pods, and that the commands in its last lines work as printed: a pod is bound, a slack policy gets a
// node, and the load and the scores are shown.
func TestDemoPlayground(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &program.Output{}
	demo := exec.CommandContext(t.Context(), program.Path(t, "plimsoll-demo"), "--scenario", "limits,fleet")
	demo.Env, demo.Stderr = append(os.Environ(), "TMPDIR="+dir), log
	must.Succeed(t, demo.Start())
	eventually.True(t, "the demo does not print the commands to try", log, func(context.Context) (bool, error) {
		return strings.Contains(log.String(), " explain pod try\n"), nil
	})
	match := regexp.MustCompile(`live page: +(http://127\.0\.0\.1:\d+)`).FindStringSubmatch(log.String())
	_, commands, found := strings.Cut(log.String(), "project's folder:\n")
	if match == nil || !found || !strings.Contains(log.String(), "profiles:   default-scheduler, plimsoll-scheduler, plimsoll-limits, ") {
		t.Fatalf("the last lines of the demo are incomplete:\n%s", log)
	}
	awaitOnPage(t, match[1], "<h3>large-1</h3>")
	if page, err := program.Get(t.Context(), match[1]); err != nil || strings.Contains(page, "</b> selects <b>") {
		t.Errorf("the live page shows a decision: %v\n%s", err, page)
	}

	out := runInProject(t, commands)
	if !strings.Contains(out, "pod/try created") || !strings.Contains(out, "resourceslack.plimsoll.dev/general created") ||
		!regexp.MustCompile(`large-1 .*60`).MatchString(out) || !strings.Contains(out, "medium-2") {
		t.Errorf("the commands print\n%s", out)
	}
	// 8 shop pods of 1 CPU fill two nodes of 4 CPUs. The slack is a third one.
	awaitOnPage(t, match[1], "<h3>try ", "<b>plimsoll-scheduler</b> selects <b>medium-2</b>; the default profile selects <b>small-2</b>",
		"small-2 scores ", "PredictedUtilization &#43;", "<h3>general-3</h3>")
	kubeconfig := regexp.MustCompile(`export KUBECONFIG=\S+`).FindString(commands)
	runInProject(t, kubeconfig+`
kubectl run lost --image=registry.k8s.io/pause:3.10 --overrides='{"spec":{"schedulerName":"mine"}}'`)
	const unknown = "no scheduler in this cluster has a profile"
	awaitOnPage(t, match[1], unknown)

	must.Succeed(t, demo.Process.Signal(syscall.SIGINT))
	if err := demo.Wait(); err != nil {
		t.Errorf("exited with %v\n%s", err, log)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v (%v)", left, err)
	}
}
