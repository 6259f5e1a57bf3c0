package placement

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
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
