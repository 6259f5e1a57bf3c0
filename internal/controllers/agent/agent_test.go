package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	"k8s.io/client-go/util/connrotation"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// fakeHub receives reports or returns errors.
type fakeHub struct {
	// offset is added to the clock of the agent.
	offset atomic.Int64

	mu sync.Mutex
	// errors are the errors of reports by kind, memberError is the error of listing policies in the
	// member cluster.
	errors      map[string]error
	memberError error
	// received are the kinds of successful reports, failed the times of failed reports.
	received []string
	failed   []time.Time
	// validUntil is the end of the validity of the last scores.
	validUntil time.Time
}

// setError sets the error of reports of a kind.
func (f *fakeHub) setError(kind string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[kind] = err
}

// setMemberError sets the error of listing policies in the member cluster.
func (f *fakeHub) setMemberError(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memberError = err
}

func (f *fakeHub) receive(kind string, validUntil time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.errors[kind]; err != nil {
		f.failed = append(f.failed, time.Now())
		return err
	}
	f.received = append(f.received, kind)
	if kind == scoreKind {
		f.validUntil = validUntil
	}
	return nil
}

func (f *fakeHub) writeScores(_ context.Context, _ []namedScore, validUntil time.Time) error {
	return f.receive(scoreKind, validUntil)
}

func (f *fakeHub) writeResources(context.Context, v1.ResourceList, v1.ResourceList, bool) error {
	return f.receive(clusterKind, time.Time{})
}

func (f *fakeHub) writeCapacity(context.Context, *capacityv1alpha1.ClusterCapacityStatus) error {
	return f.receive(capacityv1alpha1.Kind, time.Time{})
}

// reports waits for a duration and returns the kinds of the reports received meanwhile, the times of
// failed reports, and the time for which the last scores remain valid.
func (f *fakeHub) reports(d time.Duration) (received []string, failed []time.Time, valid time.Duration) {
	<-time.After(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	received, failed = f.received, f.failed
	f.received, f.failed = nil, nil
	return received, failed, time.Until(f.validUntil)
}

// newAgent returns the agent of a cluster with one node and other objects, and its hub.
func newAgent(report ReportResources, objects ...runtime.Object) (a *Agent, hub *fakeHub) {
	hub = &fakeHub{errors: map[string]error{}}
	member := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		slackPolicies: "ResourceSlackList", nodePools: "NodePoolList", nodeClaims: "NodeClaimList", resourceQuotas: "ResourceQuotaList",
	}, objects...)
	member.PrependReactor("list", "resourceslacks", func(clienttesting.Action) (bool, runtime.Object, error) {
		hub.mu.Lock()
		defer hub.mu.Unlock()
		return hub.memberError != nil, nil, hub.memberError
	})
	a = New(Options{Hub: &Hub{cluster: "cluster1"}, Interval: 30 * time.Second, ValidFor: 90 * time.Second, Resources: report}, member,
		prometheus.NewRegistry())
	a.hub, a.now = hub, func() time.Time { return time.Now().Add(time.Duration(hub.offset.Load())) }
	a.observer = newFakeObserver(node("n", nil))
	return a, hub
}

// withAgent runs a test while an agent is running, in the time of synctest.
func withAgent(t *testing.T, report ReportResources, test func(t *testing.T, a *Agent, hub *fakeHub)) {
	synctest.Test(t, func(t *testing.T) {
		a, hub := newAgent(report)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { a.run(ctx) })
		synctest.Wait()
		test(t, a, hub)
		cancel()
		running.Wait()
	})
}

func TestOnlyChangesAreReported(t *testing.T) {
	withAgent(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		if got, _, valid := hub.reports(0); !slices.Equal(got, []string{scoreKind, clusterKind}) || valid != 90*time.Second {
			t.Fatalf("first reports %v, scores valid for %s", got, valid)
		}
		a.observer.set(node("n", func(n *v1.Node) { n.ResourceVersion = "a heartbeat" }))
		if got, _, _ := hub.reports(40 * time.Second); len(got) != 0 {
			t.Errorf("reports without a change: %v, want none", got)
		}
		// The scores are valid until 90 s and refreshed at 60 s.
		if got, _, _ := hub.reports(30 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("reports before the scores expire: %v", got)
		}
		a.observer.set(pod("p", "n"))
		if got, _, _ := hub.reports(32 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("reports after a pod was added: %v", got)
		}
		a.observer.set(node("another", nil))
		if got, _, _ := hub.reports(32 * time.Second); !slices.Equal(got, []string{scoreKind, clusterKind}) {
			t.Errorf("reports after a node was added: %v", got)
		}
		// 660 s: scores every other interval of 30 to 31.5 s, at least 660 / 63 and at most 660 / 60 times; resources after 600 s.
		got, _, _ := hub.reports(11 * time.Minute)
		all := strings.Join(got, " ")
		if scores := strings.Count(all, scoreKind); strings.Count(all, clusterKind) != 1 || scores < 10 || scores > 11 {
			t.Errorf("reports in 11 minutes: %v", got)
		}
	})
}

// TestClockJumps checks that scores are written again when the clock of the agent has jumped, so that scores on
// the hub do not expire an hour too early or too late.
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		withAgent(t, Never, func(t *testing.T, a *Agent, hub *fakeHub) {
			hub.reports(time.Second)
			for i, by := range []time.Duration{jump, 0} { // the clock jumps, and is corrected
				hub.offset.Store(int64(by))
				got, _, valid := hub.reports(32 * time.Second)
				if len(got) != 1 || valid < by+50*time.Second || valid > by+90*time.Second {
					t.Errorf("jump by %s, change %d: reports %v, valid for %s of the right clock", jump, i, got, valid)
				}
			}
		})
	}
}

func TestFailedReportsAreRetried(t *testing.T) {
	withAgent(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		hub.setError(scoreKind, errors.New("unavailable"))
		a.observer.set(pod("p", "n"))
		hub.reports(0)
		_, failed, _ := hub.reports(8 * time.Minute)
		if n := len(failed); n < 26 || n > 46 {
			t.Errorf("%d attempts in 8 minutes", n)
		}
		for i, at := range failed[1:] {
			pause, longest := at.Sub(failed[i]), 18*time.Second
			if i == 0 {
				longest = 1200 * time.Millisecond
			}
			if pause < 800*time.Millisecond || pause > longest {
				t.Errorf("pause %d is %s, want 800ms to %s", i, pause, longest)
			}
		}
		a.observer.set(pod("q", "n"))
		hub.setError(scoreKind, nil)
		if got, _, _ := hub.reports(18 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("reports after the hub recovered: %v", got)
		}
	})
}

func TestKindsFailIndependently(t *testing.T) {
	withAgent(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		hub.reports(0)
		hub.setError(clusterKind, errors.New("forbidden"))
		a.observer.set(node("another", nil))
		if got, _, _ := hub.reports(2 * time.Minute); len(got) == 0 || slices.Contains(got, clusterKind) {
			t.Errorf("received %v", got)
		}
	})
}

func TestResourcesOwnedByAnotherClient(t *testing.T) {
	withAgent(t, Auto, func(t *testing.T, a *Agent, hub *fakeHub) {
		hub.setError(clusterKind, apierrors.NewConflict(schema.GroupResource{Resource: "managedclusters"}, "cluster1", nil))
		a.observer.set(node("another", nil))
		if _, failed, _ := hub.reports(5 * time.Minute); len(failed) != 1 {
			t.Errorf("%d attempts in 5 minutes", len(failed))
		}
		hub.setError(clusterKind, nil)
		if got, _, _ := hub.reports(7 * time.Minute); !slices.Contains(got, clusterKind) {
			t.Errorf("reports after the other client released the resources: %v", got)
		}
	})
	withAgent(t, Never, func(t *testing.T, _ *Agent, hub *fakeHub) {
		if got, _, _ := hub.reports(0); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("received %v", got)
		}
	})
}

// TestUnavailableMember checks that nothing is reported while the API server of the cluster does not
// answer, so that the scores expire.
func TestUnavailableMember(t *testing.T) {
	withAgent(t, Auto, func(t *testing.T, _ *Agent, hub *fakeHub) {
		hub.reports(0)
		hub.setMemberError(errors.New("connection refused"))
		if got, _, valid := hub.reports(5 * time.Minute); len(got) != 0 || valid > 0 {
			t.Errorf("received %v", got)
		}
		hub.setMemberError(nil)
		if got, _, _ := hub.reports(30 * time.Second); !slices.Equal(got, []string{scoreKind}) {
			t.Errorf("reports after the cluster recovered: %v", got)
		}
	})
}

func TestPoliciesAreOptional(t *testing.T) {
	resource := schema.GroupResource{Group: "plimsoll.dev", Resource: "resourceslacks"}
	for name, err := range map[string]error{"no CRD": apierrors.NewNotFound(resource, ""), "forbidden": apierrors.NewForbidden(resource, "",
		nil)} {
		a, hub := newAgent(Never)
		hub.setMemberError(err)
		if err := a.reportAll(t.Context()); err != nil || len(hub.received) != 1 || len(a.last.scores) != 6 {
			t.Errorf("%s: %v, scores %v", name, err, a.last.scores)
		}
	}
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 15 * time.Second,
		1 << 40: 15 * time.Second,
	} {
		if got := backoff(failures, time.Minute); got != want {
			t.Errorf("backoff(%d) = %s, want %s", failures, got, want)
		}
	}
	if got := backoff(9, 5*time.Second); got != 5*time.Second {
		t.Errorf("backoff(9) with an interval of 5s = %s, want 5s", got)
	}
}

func TestExplain(t *testing.T) {
	c := &Hub{path: "/etc/hub", cluster: "cluster1", connections: connrotation.NewDialer(nil)}
	resource := schema.GroupResource{Resource: "managedclusters"}
	for name, tc := range map[string]struct {
		err             error
		reason, message string
	}{
		"unauthorized": {apierrors.NewUnauthorized("no"), reasonUnauthorized, "replace them in the file"},
		"forbidden":    {apierrors.NewForbidden(resource, "cluster1", nil), reasonForbidden, "agent-hub-rbac.yaml"},
		"not found":    {apierrors.NewNotFound(resource, "cluster1"), reasonMissing, `check that "cluster1" is the name of the cluster there`},
		"invalid":      {apierrors.NewBadRequest("no"), reasonRefused, "rejected"},
		"overloaded":   {apierrors.NewTooManyRequests("later", 1), reasonUnreachable, "status 429"},
		"no file":      {&os.PathError{Op: "open", Path: "/etc/hub", Err: os.ErrNotExist}, reasonKubeconfig, "reading the kubeconfig"},
		"client":       {fmt.Errorf("remote: %w", tls.AlertError(45)), reasonCertificate, "client certificate in /etc/hub"},
		"server":       {&tls.CertificateVerificationError{Err: errors.New("expired")}, reasonCertificate, "not trusted by /etc/hub"},
		"timeout":      {context.DeadlineExceeded, reasonUnreachable, "is unreachable"},
	} {
		err := c.explain(tc.err, clusterKind)
		if reasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.message) || !errors.Is(err, tc.err) {
			t.Errorf("%s: reason %s, error %v; want %s, %q", name, reasonOf(err), err, tc.reason, tc.message)
		}
	}
	if c.explain(nil, clusterKind) != nil || reasonOf(nil) != "" || reasonOf(errors.New("x")) != reasonOther {
		t.Error("nil or a plain error has the wrong reason")
	}
}

// TestHubRequiresLease checks that nothing is written to the hub while the agent does not hold its lease, and that the
// error has reasonMember.
func TestHubRequiresLease(t *testing.T) {
	requests := 0
	hub := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer hub.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := strings.Replace(fmt.Sprintf(kubeconfig, hub.Listener.Addr()), "https:", "http:", 1)
	must.Succeed(t, os.WriteFile(path, []byte(config), 0o600))
	h, err := NewHub("c", path, "test", new(setup.Lease).RefuseWrites) // a lease that was never acquired
	must.Succeed(t, err)
	for _, err := range []error{h.writeScores(t.Context(), nil, time.Now()), h.writeResources(t.Context(), nil, nil, true)} {
		if reasonOf(err) != reasonMember || !strings.Contains(err.Error(), "the agent does not hold its lease in the cluster: ") {
			t.Errorf("reason %s: %v", reasonOf(err), err)
		}
	}
	if requests != 0 {
		t.Errorf("the hub has received %d requests", requests)
	}
}

const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://%s"}}],"users":[{"name":"u","user":{"token":"t"}}]}`

// TestKubeconfigIsReloaded checks that a kubeconfig is read again only when it changed, and that a
// deleted one is an error.
func TestKubeconfigIsReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(text string) {
		t.Helper()
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(fmt.Sprintf(kubeconfig, "one"))
	h, err := NewHub("c", path, "test", nil)
	must.Succeed(t, err)
	client := func() dynamic.Interface {
		t.Helper()
		got, err := h.connect()
		must.Succeed(t, err)
		return got
	}
	first := client()
	if client() != first {
		t.Error("new client for an unchanged file")
	}
	write(fmt.Sprintf(kubeconfig, "two"))
	if client() == first {
		t.Error("same client for a changed file")
	}
	for name, text := range map[string]string{
		"empty": "", "not YAML": "{", "no cluster": `{"apiVersion":"v1","kind":"Config"}`,
		"missing certificate file": strings.Replace(fmt.Sprintf(kubeconfig, "x"), `"token":"t"`,
			`"client-certificate":"/nonexistent","client-key":"/nonexistent"`, 1),
	} {
		write(text)
		if _, err := h.connect(); reasonOf(h.explain(err, scoreKind)) != reasonKubeconfig {
			t.Errorf("%s: connect() returned %v", name, err)
		}
		if _, err := NewHub("c", path, "test", nil); err == nil {
			t.Errorf("%s: NewHub() returned no error", name)
		}
	}
	must.Succeed(t, os.Remove(path))
	if _, err := h.connect(); reasonOf(h.explain(err, scoreKind)) != reasonKubeconfig {
		t.Error(err)
	}
}
