package placement

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Scores are rate limited also if the cache does not contain the last write of scores yet.
func TestScoreDelay(t *testing.T) {
	now := time.Unix(1_795_239_886, 0)
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	for name, tc := range map[string]struct {
		status  *metav1.Time
		written time.Duration // time since, 0 if never
		want    time.Duration
	}{
		"never written":   {nil, 0, 0},
		"status":          {at(20 * time.Second), 0, 40 * time.Second},
		"no status":       {nil, 10 * time.Second, 50 * time.Second},
		"outdated status": {at(time.Hour), 10 * time.Second, 50 * time.Second},
		"newer status":    {at(20 * time.Second), time.Hour, 40 * time.Second},
		"long ago":        {at(time.Hour), time.Hour, 0},
		// The clock was an hour ahead.
		"in the future":         {at(-time.Hour), 0, 0},
		"written in the future": {nil, -time.Hour, 0},
	} {
		c := &Controller{}
		object := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}}
		object.Status.LastScoreUpdateTime = tc.status
		if tc.written != 0 {
			c.scored.Store(client.ObjectKeyFromObject(object), now.Add(-tc.written))
		}
		if got := max(0, c.scoreDelay(object, now)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A latency is measured once, from the first change that has not been written, also if a write fails in between.
func TestLatency(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", withoutScores))...)
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.c.metrics.latency)
	expect := func(step string, count uint64, pending bool) {
		t.Helper()
		families, err := registry.Gather()
		must.Succeed(t, err)
		latency := families[0].GetMetric()[0].GetHistogram()
		_, waits := h.c.changes.Load(keyOf("p"))
		if latency.GetSampleCount() != count || latency.GetSampleSum() < float64(count)*3600 || waits != pending {
			t.Errorf("%s: %d samples, sum %v s, change pending %t", step, latency.GetSampleCount(), latency.GetSampleSum(), waits)
		}
	}
	h.c.changes.Store(keyOf("p"), time.Now().Add(-time.Hour))
	h.fail = func(string) error { return errors.New("connection refused") }
	if _, err := h.reconcile("p"); err == nil {
		t.Error("no error although the write failed")
	}
	expect("after a failed write", 0, true)
	h.fail = nil
	h.settled("p")
	expect("after a write", 1, false)
	h.c.changes.Store(keyOf("p"), time.Now())
	h.settled("p")
	expect("nothing written", 1, false)
	h.c.changes.Store(keyOf("gone"), time.Now())
	h.settled("gone")
	if _, waits := h.c.changes.Load(keyOf("gone")); waits {
		t.Error("the change of a placement that does not exist is kept")
	}
}
