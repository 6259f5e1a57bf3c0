package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/clusterscore"
)

// fakeHub takes reports, or fails.
type fakeHub struct {
	mu sync.Mutex
	// fails is what a report of a kind ends with, away what asking the member's API
	// server for policies does.
	fails map[string]error
	away  error
	// took are the reports that it has taken, failed the times of the others.
	took   []string
	failed []time.Time
	until  time.Time
}

// fail makes reports of a kind fail, or not fail any more.
func (f *fakeHub) fail(kind string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails[kind] = err
}

// leave makes the member's API server fail, or not fail any more.
func (f *fakeHub) leave(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

func (f *fakeHub) take(kind string, until time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails[kind]; err != nil {
		f.failed = append(f.failed, time.Now())
		return err
	}
	f.took = append(f.took, kind)
	if kind == scoreKind {
		f.until = until
	}
	return nil
}

func (f *fakeHub) scores(_ context.Context, _ []clusterscore.Score, until time.Time) error {
	return f.take(scoreKind, until)
}

func (f *fakeHub) resources(context.Context, v1.ResourceList, v1.ResourceList, bool) error {
	return f.take(clusterKind, time.Time{})
}

// reports lets a time pass, and returns what the hub took meanwhile, when it
// failed, and how long the scores that it has hold.
func (f *fakeHub) reports(d time.Duration) (took []string, failed []time.Time, valid time.Duration) {
	<-time.After(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	took, failed = f.took, f.failed
	f.took, f.failed = nil, nil
	return took, failed, time.Until(f.until)
}

// newTest returns an agent of a cluster with one node, and its hub.
func newTest(report ReportResources) (a *Agent, hub *fakeHub) {
	hub = &fakeHub{fails: map[string]error{}}
	member := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		v1alpha1.GroupVersion.WithResource("resourceslacks"): "ResourceSlackList",
	})
	member.PrependReactor("list", "resourceslacks", func(clienttesting.Action) (bool, runtime.Object, error) {
		hub.mu.Lock()
		defer hub.mu.Unlock()
		return hub.away != nil, nil, hub.away
	})
	a = New(Options{Cluster: "cluster1", Hub: &Hub{}, Interval: 30 * time.Second, ValidFor: 90 * time.Second, Resources: report}, member, prometheus.NewRegistry())
	a.hub = hub
	a.observer.setNode(node("n", nil))
	return a, hub
}

// running runs a test beside a running agent, in time that does not pass.
func running(t *testing.T, report ReportResources, test func(t *testing.T, a *Agent, hub *fakeHub)) {
	synctest.Test(t, func(t *testing.T) {
		a, hub := newTest(report)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.run(ctx) }()
		synctest.Wait()
		test(t, a, hub)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestOnlyChangesAreReported(t *testing.T) {
	running(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		if got, _, valid := hub.reports(0); !slices.Equal(got, []string{scoreKind, clusterKind}) || valid != 90*time.Second {
			t.Fatalf("first %v, valid for %s", got, valid)
		}
		a.observer.setNode(node("n", func(n *v1.Node) { n.ResourceVersion = "a heartbeat" }))
		if got, _, _ := hub.reports(40 * time.Second); len(got) != 0 {
			t.Errorf("without a change %v", got)
		}
		// The scores hold until 90 s and are refreshed at 60.
		if got, _, _ := hub.reports(30 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("before the scores expire %v", got)
		}
		a.observer.setPod(pod("p", "n"))
		if got, _, _ := hub.reports(32 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("with another pod %v", got)
		}
		a.observer.setNode(node("another", nil))
		if got, _, _ := hub.reports(32 * time.Second); !slices.Equal(got, []string{scoreKind, clusterKind}) {
			t.Errorf("with another node %v", got)
		}
		// Ten minutes: scores every other interval, resources once.
		got, _, _ := hub.reports(11 * time.Minute)
		if got := strings.Join(got, " "); strings.Count(got, clusterKind) != 1 || strings.Count(got, scoreKind) != 11 {
			t.Errorf("in 11 minutes %v", got)
		}
	})
}

func TestFailuresAreTriedAgain(t *testing.T) {
	running(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		hub.fail(scoreKind, errors.New("away"))
		a.observer.setPod(pod("p", "n"))
		hub.reports(0)
		_, failed, _ := hub.reports(8 * time.Minute)
		if n := len(failed); n < 26 || n > 46 {
			t.Errorf("%d attempts in 8 minutes", n)
		}
		for i, at := range failed[1:] {
			pause, most := at.Sub(failed[i]), 18*time.Second
			if i == 0 {
				most = 1200 * time.Millisecond
			}
			if pause < 800*time.Millisecond || pause > most {
				t.Errorf("pause %d is %s", i, pause)
			}
		}
		a.observer.setPod(pod("q", "n"))
		hub.fail(scoreKind, nil)
		if got, _, _ := hub.reports(18 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("when the hub is back %v", got)
		}
	})
}

func TestOneKindMayFail(t *testing.T) {
	running(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		hub.reports(0)
		hub.fail(clusterKind, errors.New("not allowed"))
		a.observer.setNode(node("another", nil))
		if got, _, _ := hub.reports(2 * time.Minute); len(got) == 0 || slices.Contains(got, clusterKind) {
			t.Errorf("took %v", got)
		}
	})
}

func TestResourcesOfSomebodyElse(t *testing.T) {
	running(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		hub.fail(clusterKind, &ownedError{errors.New("conflict")})
		a.observer.setNode(node("another", nil))
		if _, failed, _ := hub.reports(5 * time.Minute); len(failed) != 1 {
			t.Errorf("%d attempts in 5 minutes", len(failed))
		}
		hub.fail(clusterKind, nil)
		if got, _, _ := hub.reports(7 * time.Minute); !slices.Contains(got, clusterKind) {
			t.Errorf("when nobody else reports them any more %v", got)
		}
	})
	running(t, Never, func(t *testing.T, _ *Agent, hub *fakeHub) {
		if got, _, _ := hub.reports(0); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("took %v", got)
		}
	})
}

// Of a cluster that does not answer, nothing is refreshed.
func TestMemberAway(t *testing.T) {
	running(t, Auto, func(t *testing.T, _ *Agent, hub *fakeHub) {
		hub.reports(0)
		hub.leave(errors.New("connection refused"))
		if got, _, valid := hub.reports(5 * time.Minute); len(got) != 0 || valid > 0 {
			t.Errorf("took %v", got)
		}
		hub.leave(nil)
		if got, _, _ := hub.reports(30 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("when the cluster is back %v", got)
		}
	})
}

func TestPoliciesThatMayNotBeRead(t *testing.T) {
	what := schema.GroupResource{Group: "plimsoll.dev", Resource: "resourceslacks"}
	for name, err := range map[string]error{"no type": apierrors.NewNotFound(what, ""), "no right": apierrors.NewForbidden(what, "", nil)} {
		a, hub := newTest(Never)
		hub.leave(err)
		if err := a.report(t.Context()); err != nil || len(hub.took) != 1 || len(a.sent.scores) != 6 {
			t.Errorf("%s: %v, scores %v", name, err, a.sent.scores)
		}
	}
}

func TestBackOff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 15 * time.Second, 1 << 40: 15 * time.Second} {
		if got := backOff(failures, time.Minute); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
	if got := backOff(9, 5*time.Second); got != 5*time.Second {
		t.Errorf("with an interval of 5s %s", got)
	}
}

func TestFailuresSayWhatToDo(t *testing.T) {
	p := &place{&Hub{path: "/etc/hub"}, "cluster1"}
	what := schema.GroupResource{Resource: "managedclusters"}
	for name, tc := range map[string]struct {
		err         error
		reason, say string
	}{
		"unauthorized": {apierrors.NewUnauthorized("no"), reasonUnauthorized, "put new ones there"},
		"forbidden":    {apierrors.NewForbidden(what, "cluster1", nil), reasonForbidden, "agent-hub-rbac.yaml"},
		"not found":    {apierrors.NewNotFound(what, "cluster1"), reasonMissing, `is "cluster1" the cluster's name there`},
		"invalid":      {apierrors.NewBadRequest("no"), reasonRefused, "refuses"},
		"overloaded":   {apierrors.NewTooManyRequests("later", 1), reasonUnreachable, "status 429"},
		"no file":      {&os.PathError{Op: "open", Path: "/etc/hub", Err: os.ErrNotExist}, reasonKubeconfig, "cannot be read"},
		"client":       {fmt.Errorf("remote: %w", tls.AlertError(45)), reasonCertificate, "client certificate in /etc/hub"},
		"server":       {&tls.CertificateVerificationError{Err: errors.New("expired")}, reasonCertificate, "not one that /etc/hub trusts"},
		"timeout":      {context.DeadlineExceeded, reasonUnreachable, "cannot be reached"},
	} {
		err := p.explain(tc.err, clusterKind)
		if reasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.say) || !errors.Is(err, tc.err) {
			t.Errorf("%s: %s: %v", name, reasonOf(err), err)
		}
	}
	if p.explain(nil, clusterKind) != nil || reasonOf(nil) != "" || reasonOf(errors.New("x")) != reasonOther {
		t.Error("nothing is something")
	}
}

const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://%s"}}],"users":[{"name":"u","user":{"token":"t"}}]}`

// A kubeconfig is read again when it has changed, and only then; one that is
// gone is an error.
func TestKubeconfigIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(fmt.Sprintf(kubeconfig, "one"))
	h, err := NewHub(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	client := func() dynamic.Interface {
		t.Helper()
		is, err := h.connect()
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	first := client()
	if client() != first {
		t.Error("another client for the same file")
	}
	put(fmt.Sprintf(kubeconfig, "two"))
	if client() == first {
		t.Error("the same client for another file")
	}
	for name, text := range map[string]string{"empty": "", "not YAML": "{", "no cluster": `{"apiVersion":"v1","kind":"Config"}`, "a file of a token that is not there": strings.Replace(fmt.Sprintf(kubeconfig, "x"), `"token":"t"`, `"client-certificate":"/nonexistent","client-key":"/nonexistent"`, 1)} {
		put(text)
		if _, err := h.connect(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := NewHub(path, "test"); err == nil {
			t.Errorf("%s: no error at start", name)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := h.connect(); reasonOf(h.of("c").(*place).explain(err, scoreKind)) != reasonKubeconfig {
		t.Error(err)
	}
}
