package integration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/oncluster"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/source"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// Images of the tests, and the namespace of the Jobs.
const (
	plimsollImage  = "plimsoll:test"
	brokenImage    = "broken:test"
	unstableImage  = "unstable:test"
	sweepNamespace = "sweeps"
)

// sweepCluster is a control plane whose kubelets run the command line tool, with a scheduler and a user with the documented rights.
type sweepCluster struct {
	*controlplane.ControlPlane
	client *kubernetes.Clientset
	// user is a kubeconfig with the documented rights and no others.
	user string
}

// startSweepCluster starts the cluster. The namespace enforces the restricted security standard.
func startSweepCluster(t testing.TB) *sweepCluster {
	t.Helper()
	dir := t.TempDir()
	unstable := filepath.Join(dir, "unstable")
	// The first pod fails, all others run the program.
	script := fmt.Sprintf(
		"#!/bin/sh\nif mkdir %s/failed 2>/dev/null; then echo simulated failure >&2; exit 9; fi\nexec %s \"$@\"\n",
		dir,
		binaries.plimsoll,
	)
	if err := os.WriteFile(unstable, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cp, config := plane.Start(t, controlplane.Options{Programs: map[string]string{
		plimsollImage: binaries.plimsoll, brokenImage: "/bin/false", unstableImage: unstable,
	}})
	c := &sweepCluster{ControlPlane: cp, client: kubernetes.NewForConfigOrDie(config), user: filepath.Join(dir, "user")}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: sweepNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	_, err := c.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	must(err)
	_, err = c.client.CoreV1().Nodes().Create(t.Context(), readyNode("node", "64", "256Gi", nil), metav1.CreateOptions{})
	must(err)
	_, err = c.client.RbacV1().Roles(sweepNamespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "user"}, Rules: oncluster.UserRules(),
	}, metav1.CreateOptions{})
	must(err)
	_, err = c.client.RbacV1().RoleBindings(sweepNamespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "user"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "user"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "user"}},
	}, metav1.CreateOptions{})
	must(err)
	plane.AwaitRights(t, c.client, "user", nil, sweepNamespace, oncluster.UserRules())
	must(cp.WriteKubeconfig(c.user, "user"))
	scheduler := filepath.Join(dir, "scheduler.yaml")
	must(os.WriteFile(scheduler, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: "+cp.Kubeconfig+"}\n"), 0o600))
	program.Start(t, binaries.scheduler, "--config="+scheduler, "--secure-port=0")
	return c
}

// args returns the arguments that run a command on the cluster.
func (c *sweepCluster) args(image string, args ...string) []string {
	return append(args, "--on-cluster", "--kubeconfig", c.user, "--namespace", sweepNamespace, "--image", image, "--parallelism", "2")
}

// left returns the objects of sweeps.
func (c *sweepCluster) left(ctx context.Context) ([]string, error) {
	var left []string
	options := metav1.ListOptions{LabelSelector: "plimsoll.dev/sweep"}
	add := func(kind string, count int, err error) error {
		if count > 0 {
			left = append(left, fmt.Sprintf("%d %s", count, kind))
		}
		return err
	}
	jobs, err := c.client.BatchV1().Jobs(sweepNamespace).List(ctx, options)
	if err := add("jobs", len(jobs.Items), err); err != nil {
		return nil, err
	}
	maps, err := c.client.CoreV1().ConfigMaps(sweepNamespace).List(ctx, options)
	if err := add("configmaps", len(maps.Items), err); err != nil {
		return nil, err
	}
	roles, err := c.client.RbacV1().Roles(sweepNamespace).List(ctx, options)
	if err := add("roles", len(roles.Items), err); err != nil {
		return nil, err
	}
	bindings, err := c.client.RbacV1().RoleBindings(sweepNamespace).List(ctx, options)
	if err := add("rolebindings", len(bindings.Items), err); err != nil {
		return nil, err
	}
	accounts, err := c.client.CoreV1().ServiceAccounts(sweepNamespace).List(ctx, options)
	if err := add("serviceaccounts", len(accounts.Items), err); err != nil {
		return nil, err
	}
	pods, err := c.client.CoreV1().Pods(sweepNamespace).List(ctx, options)
	return left, add("pods", len(pods.Items), err)
}

// mustBeClean waits until the objects of sweeps are deleted.
func (c *sweepCluster) mustBeClean(t *testing.T) {
	t.Helper()
	var left []string
	eventually.True(t, "objects of the sweep remain", nil, func(ctx context.Context) (bool, error) {
		var err error
		left, err = c.left(ctx)
		return len(left) == 0, err
	})
}

// TestOnCluster verifies that compare and tune in pods print the same bytes as on this machine, with files of all kinds as input, also if
// a pod fails, and that the Job and everything that belongs to it are deleted.
func TestOnCluster(t *testing.T) {
	c := startSweepCluster(t)
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		image string
		args  []string
	}{
		{unstableImage, []string{
			"compare", "--profile", "default", "--profile", "low-risk", "--generate", "nodes=10,pods=300,over=600,fill=0.9,best-effort=0.1",
			"--usage", "bursts:mean=0.7", "--seeds", "5", "--tail", "10m", "-o", "json",
		}},
		{plimsollImage, []string{
			"compare", "--profile", "default", "--profile", "limits", "-f", filepath.Join(examples, "limits"), "--tail", "10m", "-o", "json",
		}},
		{plimsollImage, []string{
			"compare", "--profile", "default", "--profile", "limits", "--snapshot", filepath.Join(examples, "snapshot", "low-risk.tar.gz"),
			"--reschedule", "--tail", "10m", "-o", "json",
		}},
		{plimsollImage, []string{
			"tune", "--generate", "nodes=6,pods=180,over=600,fill=0.9,best-effort=0.2", "--usage", "bursts:mean=0.8", "--tail", "10m",
			"--rounds", "1", "--seeds", "2", "--confirm", "2", "-o", "json",
		}},
	} {
		local, _ := mustPlimsoll(t, tc.args...)
		remote, _ := mustPlimsoll(t, c.args(tc.image, tc.args...)...)
		if local != remote {
			t.Errorf("%v: %d bytes on this machine, other %d bytes in pods", tc.args, len(local), len(remote))
		}
		c.mustBeClean(t)
	}
}

// TestOnClusterInterrupted verifies that Ctrl-C ends the command within seconds with marked results, and that the Job, everything that
// belongs to it and the processes of its pods are gone.
func TestOnClusterInterrupted(t *testing.T) {
	c := startSweepCluster(t)
	cmd := exec.Command(binaries.plimsoll, c.args(plimsollImage, "compare", "--profile", "default", "--profile", "limits",
		"--generate", "nodes=300,pods=30000,over=30000", "--seeds", "4")...)
	var out, errOut program.Output
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "no pod runs", &errOut, func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(sweepNamespace).List(ctx, metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(pods.Items, func(p v1.Pod) bool { return p.Status.Phase == v1.PodRunning }), err
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(errOut.String(), "plimsoll: interrupted: ") {
		t.Errorf("%v: %s", err, errOut.String())
	}
	if !strings.Contains(out.String(), "runs not started") {
		t.Errorf("the results are not marked:\n%s", out.String())
	}
	c.mustBeClean(t)
	eventually.True(t, "processes of pods remain", nil, func(context.Context) (bool, error) {
		left, err := filepath.Glob(filepath.Join(c.Dir, "pods", "*"))
		return len(left) == 0, err
	})
}

// rightsRecorder counts the rights that requests need.
type rightsRecorder struct {
	mu     sync.Mutex
	used   map[string]bool
	parser request.RequestInfoFactory
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *rightsRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	info, err := r.parser.NewRequestInfo(req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.used[strings.Join([]string{info.APIGroup, info.Resource, info.Verb}, "/")] = true
	r.mu.Unlock()
	return r.next.RoundTrip(req)
}

// TestOnClusterRights verifies that the documented rights of a user are those that are used and no others, except for the one that the pods
// get; that the pods may patch the results and nothing else; and that an index that fails is an error with its reason.
func TestOnClusterRights(t *testing.T) {
	c := startSweepCluster(t)
	config, err := c.Config("user")
	if err != nil {
		t.Fatal(err)
	}
	recorder := &rightsRecorder{used: map[string]bool{}, parser: request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { recorder.next = next; return recorder })
	use, err := usage.Parse("constant")
	if err != nil {
		t.Fatal(err)
	}
	profile, err := profiles.Read("default")
	if err != nil {
		t.Fatal(err)
	}
	run := func(image, generate string) error {
		runner := oncluster.New(oncluster.Options{
			Client: kubernetes.NewForConfigOrDie(config), Namespace: sweepNamespace, Image: image, Version: version(t), Parallelism: 1,
			Warn: func(message string) { t.Error(message) },
		})
		_, err := runner.Run(t.Context(), []job.Job{{
			Source: source.Spec{Generate: generate}, Profile: profile, Limits: usage.Limits{CPU: 2, Memory: 2}, Usage: use,
			Metrics: replay.Metrics{Interval: 60, Delay: 60, Window: 900}, Tail: 600, Seed: 3,
		}})
		return err
	}
	if err := run(brokenImage, "nodes=1,pods=1"); err == nil || !strings.Contains(err.Error(), "index 0 failed 1 times: pod ") ||
		!strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("error %v, want that of the failed pod", err)
	}
	if err := run(plimsollImage, "nodes=1"); err == nil || !strings.Contains(err.Error(), "profile default, seed 3: --generate: pods") {
		t.Errorf("error %v, want that of --generate", err)
	}
	if err := run(plimsollImage, "nodes=1,pods=1"); err != nil {
		t.Error(err)
	}
	documented := map[string]bool{"/configmaps/patch": true}
	for _, rule := range oncluster.UserRules() {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				documented[strings.Join([]string{rule.APIGroups[0], resource, verb}, "/")] = true
			}
		}
	}
	recorder.used["/configmaps/patch"] = true // of the pods
	if !maps.Equal(recorder.used, documented) {
		t.Errorf("used %v, documented %v", slices.Sorted(maps.Keys(recorder.used)), slices.Sorted(maps.Keys(documented)))
	}
	c.mustBeClean(t)
}

// version returns the version of the command line tool.
func version(t *testing.T) string {
	t.Helper()
	text, _ := mustPlimsoll(t, "--version")
	return strings.Fields(text)[1]
}

// BenchmarkOnCluster prints how fast a comparison in two pods is in relation to two processes on this machine, which take turns:
//
//	go test ./test/integration -run '^$' -bench OnCluster -benchtime 3x
func BenchmarkOnCluster(b *testing.B) {
	c := startSweepCluster(b)
	args := []string{
		"compare",
		"--profile",
		"default",
		"--profile",
		"low-risk",
		"--generate",
		"nodes=100,pods=6000,over=3600",
		"--seeds",
		"8",
		"-o",
		"json",
	}
	elapsed := func(args []string) time.Duration {
		start := time.Now()
		cmd := exec.CommandContext(b.Context(), binaries.plimsoll, args...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return time.Since(start)
	}
	var ratios []float64
	for b.Loop() {
		local, remote := elapsed(args), elapsed(c.args(plimsollImage, args...))
		ratios = append(ratios, local.Seconds()/remote.Seconds())
		b.Logf("on this machine %s, in pods %s", local.Round(time.Millisecond), remote.Round(time.Millisecond))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "speed/local")
}
