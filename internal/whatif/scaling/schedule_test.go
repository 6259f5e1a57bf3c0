package scaling

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPlaceholdersFollowSchedules checks that placeholders have the schedule of the instant of a run: that of the recording, or the
// year 2000.
func TestPlaceholdersFollowSchedules(t *testing.T) {
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ResourceSlackSpec{
		MinRate: "0%", Schedules: []v1alpha1.Schedule{{
			Days: "Mon-Fri", From: "08:00", To: "09:00", Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("8"))},
		}},
	}}
	node := generate.NewNode("n", resources.Amounts{CPU: 16_000, Memory: 64 << 30})
	for _, tc := range []struct {
		start time.Time
		at    int64
		want  int64 // CPUs
	}{
		{time.Date(2026, 11, 25, 7, 59, 0, 0, time.UTC), 59, 0}, // a Wednesday
		{time.Date(2026, 11, 25, 7, 59, 0, 0, time.UTC), 60, 8},
		{time.Date(2026, 11, 25, 7, 59, 0, 0, time.UTC), 3660, 0},
		{time.Time{}, 8 * 3600, 0},        // Saturday, 1 January 2000
		{time.Time{}, (48 + 8) * 3600, 8}, // Monday
	} {
		p, err := newPlaceholders(&Config{Slack: policy}, &recording.Input{Start: tc.start})
		must.Succeed(t, err)
		_, plan := p.next(&Cluster{Now: tc.at, Nodes: []recording.Node{node}, Ready: []NodeState{{}}})
		// The amounts of placeholders are rounded up.
		if got := plan.Total[v1.ResourceCPU]; got.MilliValue()/1000 != tc.want {
			t.Errorf("%d s after %s: %s CPUs, want %d", tc.at, tc.start, got.String(), tc.want)
		}
	}
}
