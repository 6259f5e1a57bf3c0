package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// slowCluster is a controller whose writes take the delay of the namespace. It must be used in a bubble of synctest.
type slowCluster struct {
	*Controller
	delays map[string]time.Duration

	lock sync.Mutex
	// writes are the written objects as "namespace/name", without the hash of the name, with the time since the
	// start of the attempt.
	writes map[string]time.Duration
	start  time.Time
}

func newSlowCluster(t *testing.T, objects ...client.Object) *slowCluster {
	t.Helper()
	s := &slowCluster{delays: map[string]time.Duration{}}
	s.Controller = controllerOf(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if o, ok := object.(interface {
				GetNamespace() string
				GetName() string
			}); ok {
				<-time.After(s.delays[o.GetNamespace()])
				s.lock.Lock()
				defer s.lock.Unlock()
				if !s.mu.TryLock() { // events of pods, and other policies, would wait
					t.Error("the lock is held while objects are written")
				} else {
					s.mu.Unlock()
				}
				name, _, _ := strings.Cut(o.GetName(), "-deployment-")
				s.writes[o.GetNamespace()+"/"+name] = time.Since(s.start)
			}
			return c.Apply(ctx, object, options...)
		},
	}, append(objects, append(webPool(), newPolicy("web", "web"))...)...)
	s.now = time.Now
	return s
}

// attempt reconciles the policy and returns the time until the next attempt.
func (s *slowCluster) attempt(t *testing.T) time.Duration {
	t.Helper()
	s.writes, s.start = map[string]time.Duration{}, time.Now()
	result, err := s.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}})
	must.Succeed(t, err)
	return result.RequeueAfter
}

// mirroredIn returns a workload of a namespace with the annotation.
func mirroredIn(namespace, name, annotation string) client.Object {
	d := newMirrored(name, annotation)
	d.Namespace = namespace
	return d
}

// TestMirrorFairness checks that a tenant with many mirrors, whose writes are slow, does not delay the mirrors of
// another tenant, and that all mirrors are written in the end. Each mirror is two objects, of 1.5 seconds each: an
// attempt writes one mirror.
func TestMirrorFairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		for i := range 20 {
			objects = append(objects, mirroredIn("aaa", fmt.Sprint("m", i), "1"))
		}
		s := newSlowCluster(t, append(objects, mirroredIn("zzz", "web", "1"))...)
		s.delays["aaa"] = 1500 * time.Millisecond

		next := s.attempt(t)
		if got, ok := s.writes["zzz/web"]; !ok || got != 0 {
			t.Errorf("the other tenant's mirror is written after %s, want 0s", got)
		}
		if len(s.writes) != len(webObjects)/2+2 || time.Since(s.start) != 3*time.Second || next != batchPeriod {
			t.Errorf("first attempt: %d objects in %s, next after %s", len(s.writes), time.Since(s.start), next)
		}
		attempts := 2
		for ; s.attempt(t) == batchPeriod; attempts++ {
			if took := time.Since(s.start); took != 3*time.Second {
				t.Fatalf("attempt %d took %s", attempts, took)
			}
		}
		mirrored := slices.DeleteFunc(managed(t, s.Controller), func(o string) bool { return !strings.Contains(o, " aaa/") })
		if len(mirrored) != 40 || attempts != 20 {
			t.Errorf("%d objects of the slow namespace after %d attempts, want 40 after 20", len(mirrored), attempts)
		}
	})
}

// TestManySlowNamespaces checks that an attempt is limited in time if many namespaces are slow, also the namespace of the rate, and that
// each of them gets its turn. Each request takes 9 seconds.
func TestManySlowNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		for i := range 20 {
			objects = append(objects, mirroredIn(fmt.Sprintf("slow-%02d", i), "m", "1"))
		}
		s := newSlowCluster(t, objects...)
		for i := range 20 {
			s.delays[fmt.Sprintf("slow-%02d", i)] = 9 * time.Second
		}
		s.delays[testNamespace] = 9 * time.Second
		for range 2 {
			s.attempt(t)
			if took := time.Since(s.start); took != 18*time.Second || len(s.writes) != 21 {
				t.Errorf("an attempt wrote %d objects in %s, want 21 in 18s", len(s.writes), took)
			}
		}
	})
}

// TestMirrorsOfDeletedPolicy checks that the mirrors of a deleted policy move only to a policy that selects their
// namespace, within its maximums, and are deleted if there is none.
func TestMirrorsOfDeletedPolicy(t *testing.T) {
	limited := func(s *v1alpha1.ResourceSlackSpec) { s.Mirrors.MaxPerNamespace = new(int32(1)) }
	none := func(s *v1alpha1.ResourceSlackSpec) { s.Mirrors.NamespaceSelector = nil }
	policies := map[string]*v1alpha1.ResourceSlack{
		"aaa": newPolicy("aaa", "web"), "bbb": newPolicy("bbb", "web", none), "ccc": newPolicy("ccc", "web", limited),
	}
	objects := append(webPool(), newMirrored("api", "3"))
	for _, policy := range policies {
		objects = append(objects, policy)
	}
	c := controllerOf(t, interceptor.Funcs{}, objects...)
	for _, step := range []struct {
		deleted string // before the check
		want    map[string]int64
	}{
		{"", map[string]int64{"aaa": 3, "bbb": 0, "ccc": 0}},
		{"aaa", map[string]int64{"bbb": 0, "ccc": 1}},
		{"ccc", map[string]int64{"bbb": 0}},
	} {
		if step.deleted != "" {
			must.Succeed(t, c.client.Delete(t.Context(), policies[step.deleted]))
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: step.deleted}}
			if _, err := c.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		var sum int64
		for name, want := range step.want {
			got := reconcileOnce(t, c, name).Status.Mirrored
			if sum += got; got != want {
				t.Errorf("after the deletion of %q, policy %s has %d mirrors, want %d", step.deleted, name, got, want)
			}
		}
		exist := slices.ContainsFunc(managed(t, c), func(o string) bool { return strings.Contains(o, "api-deployment-") })
		if exist != (sum > 0) {
			t.Errorf("after the deletion of %q, mirrors exist: %t, want %t", step.deleted, exist, sum > 0)
		}
	}
}
