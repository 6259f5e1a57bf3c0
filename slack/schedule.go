package slack

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// activeSchedule is the schedule of a policy that applies from one time to another.
type activeSchedule struct {
	calendar v1alpha1.Calendar
	// from and until are the time of the last evaluation and of the next change, until zero if nothing changes.
	from, until time.Time
	status      v1alpha1.ScheduleStatus
	// policy is the policy while the schedule applies.
	policy ratePolicy
}

// advance evaluates the schedules of a valid policy at a time, and reports whether it did: an earlier evaluation
// remains valid until the next change. The clock may be set back.
func (s *activeSchedule) advance(spec *v1alpha1.ResourceSlackSpec, now time.Time) bool {
	now = now.Round(0) // schedules follow the wall clock
	if !s.from.IsZero() && !now.Before(s.from) && (s.until.IsZero() || now.Before(s.until)) {
		return false
	}
	active := s.calendar.At(now)
	until, next, changes := s.calendar.Next(now)
	s.from, s.until, s.status = now, until, v1alpha1.ScheduleStatus{}
	s.status.MinRate, _ = spec.Effective(active)
	if active != v1alpha1.NoSchedule {
		s.status.Active = new(int32(active))
	}
	if changes {
		s.status.NextChange = &metav1.Time{Time: until.UTC()}
		s.status.NextMinRate, _ = spec.Effective(next)
	}
	s.policy, _ = ratePolicyOf(spec, active) // valid
	return true
}
