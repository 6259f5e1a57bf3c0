package slack

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/config/crd"
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

// Validate returns the errors of a policy with defaults: what the API server refuses by the CRD, or else what the CRD cannot express.
func Validate(policy *v1alpha1.ResourceSlack) error {
	object := *policy
	object.Status, object.ManagedFields = v1alpha1.ResourceSlackStatus{}, nil
	if errs := crd.ValidateResourceSlack(&object); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return policy.Spec.Validate()
}

// newSchedule returns the schedule of a policy with defaults, which must be advanced. It returns an error if the policy is invalid.
func newSchedule(policy *v1alpha1.ResourceSlack) (s activeSchedule, err error) {
	if err := Validate(policy); err != nil {
		return s, err
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
