package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// TestDemoPlayground expects that the demo serves the live page after its scenarios until it is interrupted, that the page does not show
// the decisions on the demo's own pods, and that the commands in its last lines work as printed: a pod is bound, a slack policy gets a
// node, and the load is shown.
func TestDemoPlayground(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &program.Output{}
	demo := exec.CommandContext(t.Context(), binaries.demo, "--scenario", "limits,fleet")
	demo.Env, demo.Stderr = append(os.Environ(), "TMPDIR="+dir), log
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the demo does not print the commands to try", log, func(context.Context) (bool, error) {
		return strings.Contains(log.String(), " load top --config "), nil
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
		!regexp.MustCompile(`large-1 .*60`).MatchString(out) {
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

	if err := demo.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := demo.Wait(); err != nil {
		t.Errorf("exited with %v\n%s", err, log)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v (%v)", left, err)
	}
}

// compareAsInTutorial runs the comparison of the tutorial over the cluster of the demo, and expects that nodes are overloaded
// for clearly less time than with the default profile.
func compareAsInTutorial(t *testing.T, kubeconfig string) {
	t.Helper()
	commands, err := doccheck.CommandsOf("../..", "plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(commands, func(c doccheck.Command) bool {
		return strings.HasSuffix(c.Page, "tutorial.md") && slices.Contains(c.Words, "--snapshot")
	})
	if i < 0 {
		t.Fatal("the tutorial compares no profiles over a snapshot")
	}
	file, args := filepath.Join(t.TempDir(), "s.tar.gz"), append(commands[i].Arguments(), "-o", "json")
	args[slices.Index(args, "--snapshot")+1] = file
	mustPlimsoll(t, "snapshot", "-o", file, "--kubeconfig", kubeconfig)
	stdout, _ := mustPlimsoll(t, args...)
	type figure struct {
		Mean       float64
		Difference struct {
			Mean     float64
			Interval struct{ Clear bool }
		}
	}
	var result struct {
		Scenarios []struct {
			Profiles []struct{ Figures map[string]figure }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatal(err)
	}
	for _, profile := range result.Scenarios[0].Profiles[1:] {
		overload, unschedulable := profile.Figures["overloadMinutes"], profile.Figures["unschedulable"]
		if !overload.Difference.Interval.Clear || overload.Difference.Mean >= -overload.Mean || unschedulable.Mean != 0 {
			t.Errorf("%v: overload %+v, want less than half of the default's; unschedulable %+v", commands[i], overload, unschedulable)
		}
	}
}

// awaitOnPage waits until the live page contains all texts.
func awaitOnPage(t *testing.T, url string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		eventually.True(t, "the live page lacks "+want, nil, func(ctx context.Context) (bool, error) {
			page, err := program.Get(ctx, url)
			return strings.Contains(page, want), err
		})
	}
}

// runInProject runs a script in the project's folder, with kubectl in PATH, and returns its output.
func runInProject(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(kubectl(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%s\n%v", script, out, err)
	}
	return string(out)
}
