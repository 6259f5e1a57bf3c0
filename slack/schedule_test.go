package slack

import (
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// FuzzSchedule evaluates schedules of any text at any time: they are refused, or the next change is later, and nothing takes long.
func FuzzSchedule(f *testing.F) {
	f.Add("Mon-Fri", "07:30", "18:00", "Europe/Berlin", "30%", int64(1_795_239_886))
	f.Add("Sat,Sun", "22:00", "06:00", "", "1", int64(0))
	f.Add("Fri-Mon", "00:00", "24:00", "America/New_York", "1e2147483647", int64(-1))
	f.Add("", "07:30", "07:30", "../../etc/passwd", "-1%", int64(1)<<62)
	f.Fuzz(func(t *testing.T, days, from, to, zone, rate string, second int64) {
		policy := newPolicy("10%", func(s *v1alpha1.ResourceSlackSpec) {
			s.Schedules = []v1alpha1.Schedule{{Days: days, From: from, To: to, TimeZone: zone, MinRate: rate}}
		})
		policy.Spec.Default()
		s, err := newSchedule(policy)
		if err != nil {
			return
		}
		now := time.Unix(second%(1<<35), 0)
		if s.advance(now); !s.until.IsZero() && !s.until.After(now) {
			t.Errorf("the next change is at %s, not after %s", s.until, now)
		}
	})
}
