package slack

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// activeSchedule is the schedule of a policy, or none, that applies from one time to another.
type activeSchedule struct {
	spec     *v1alpha1.ResourceSlackSpec
	calendar v1alpha1.Calendar
	// from and until are the time of the last evaluation and of the next change, until zero if nothing changes.
	from, until time.Time
	status      v1alpha1.ScheduleStatus
	// policy is the policy while the schedule applies.
	policy ratePolicy
}

// newSchedule returns the schedule of a policy with defaults, which must be advanced. It returns an error if the policy is invalid.
func newSchedule(policy *v1alpha1.ResourceSlack) (s activeSchedule, err error) {
	if err := policy.Spec.Validate(); err != nil {
		return s, err
	}
	if len(policy.Name) > v1alpha1.MaxNameLength {
		return s, fmt.Errorf("metadata.name: invalid length %d: must be at most %d characters: "+
			"labels and names of placeholders contain it", len(policy.Name), v1alpha1.MaxNameLength)
	}
	calendar, _ := policy.Spec.Calendar() // valid
	return activeSchedule{spec: &policy.Spec, calendar: calendar}, nil
}

// advance evaluates the schedules at a time, unless an earlier evaluation remains valid until the next change. The clock may be set back.
func (s *activeSchedule) advance(now time.Time) {
	now = now.Round(0) // schedules follow the wall clock
	if !s.from.IsZero() && !now.Before(s.from) && (s.until.IsZero() || now.Before(s.until)) {
		return
	}
	active := s.calendar.At(now)
	until, next, changes := s.calendar.Next(now)
	s.from, s.until, s.status = now, until, v1alpha1.ScheduleStatus{}
	s.status.MinRate, s.status.Minimum = s.spec.Effective(active)
	if active != v1alpha1.NoSchedule {
		s.status.Active = new(int32(active))
	}
	if changes {
		s.status.NextChange = &metav1.Time{Time: until.UTC()}
		s.status.NextMinRate, s.status.NextMinimum = s.spec.Effective(next)
	}
	s.policy = ratePolicyOf(s.spec, s.status.MinRate, s.status.Minimum)
}
