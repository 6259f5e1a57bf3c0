package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones of schedules also where the system has none

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Calendar states which of the schedules of a policy applies at a time: the first one in the list whose days and
// times of day, on the clock of its time zone, include the time. The zero value has no schedules.
//
// +kubebuilder:object:generate=false
type Calendar struct {
	schedules []parsedSchedule
	// Warnings describe schedules that apply at the same time as an earlier one, and times that are rounded.
	Warnings []string
}

// parsedSchedule is a schedule in the terms of a clock. from and to are minutes of the day, lead the minutes before from in which the
// schedule applies, too.
//
// +kubebuilder:object:generate=false
type parsedSchedule struct {
	days           [7]bool
	from, to, lead int
	zone           *time.Location
}

// NoSchedule is the index of a schedule at times at which none applies.
const NoSchedule = -1

// weekdays are the names of days in schedules, by time.Weekday.
var weekdays = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// Calendar parses the schedules. Errors name the field, the value and what is allowed.
func (s *ResourceSlackSpec) Calendar() (Calendar, field.ErrorList) {
	var c Calendar
	var errs field.ErrorList
	path := field.NewPath("spec", "schedules")
	for i := range s.Schedules {
		parsed, invalid := s.Schedules[i].parse(path.Index(i))
		c.schedules, errs = append(c.schedules, parsed), append(errs, invalid...)
		if lead := ptr.Deref(s.Schedules[i].LeadSeconds, 0); lead%60 != 0 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %d is rounded up to whole minutes, %d",
				path.Index(i).Child("leadSeconds"), lead, 60*parsed.lead))
		}
	}
	if len(errs) == 0 {
		errs = c.compare(s.Schedules, path)
	}
	return c, errs
}

// Effective returns the rate and the minimum while the schedule with an index applies, or none with NoSchedule.
func (s *ResourceSlackSpec) Effective(schedule int) (minRate string, minimum *Amount) {
	minRate, minimum = s.MinRate, s.Minimum
	if schedule == NoSchedule {
		return minRate, minimum
	}
	if active := &s.Schedules[schedule]; active.Minimum != nil {
		minimum = active.Minimum
	}
	return cmp.Or(s.Schedules[schedule].MinRate, minRate), minimum
}

// parse parses a schedule.
func (s *Schedule) parse(path *field.Path) (p parsedSchedule, errs field.ErrorList) {
	var ok bool
	if p.days, ok = parseDays(s.Days); !ok {
		errs = append(errs, field.Invalid(path.Child("days"), s.Days, "must be days and ranges such as Mon-Fri or Sat,Sun"))
	}
	if p.from, ok = parseMinutes(s.From); !ok || p.from == minutesPerDay {
		errs = append(errs, field.Invalid(path.Child("from"), s.From, "must be a time of day such as 07:30, from 00:00 to 23:59"))
	}
	if p.to, ok = parseMinutes(s.To); !ok {
		errs = append(errs, field.Invalid(path.Child("to"), s.To, "must be a time of day such as 19:30, up to 24:00"))
	}
	var err error
	p.lead = int(ptr.Deref(s.LeadSeconds, 0)+59) / 60
	if p.zone, err = time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == time.Local.String() {
		errs = append(
			errs,
			field.Invalid(path.Child("timeZone"), s.TimeZone, "must be the name of an IANA time zone such as Europe/Berlin"),
		)
	}
	return p, errs
}

// parseDays parses days such as "Mon-Fri" or "Sat,Sun". No text is every day.
func parseDays(text string) (days [7]bool, ok bool) {
	if text == "" {
		text = "Mon-Sun"
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
		if from < 0 || to < 0 {
			return days, false
		}
		for day := from; ; day = (day + 1) % len(weekdays) {
			days[day] = true
			if day == to {
				break
			}
		}
	}
	return days, true
}

const minutesPerDay = 24 * 60

// parseMinutes parses a time of day such as "07:30" and returns it in minutes.
func parseMinutes(text string) (minutes int, ok bool) {
	if text == "24:00" {
		return minutesPerDay, true
	}
	const form = "15:04"
	t, err := time.Parse(form, text)
	return t.Hour()*60 + t.Minute(), err == nil && len(text) == len(form)
}

// applies reports whether the schedule applies at a time. A schedule that ends at or before the time of day at which it
// starts ends on the next day; days are the days of from. The lead time may begin on the day before.
func (p *parsedSchedule) applies(t time.Time) bool {
	t = t.In(p.zone)
	end := p.to
	if p.to <= p.from {
		end += minutesPerDay
	}
	for day := -1; day <= 1; day++ { // relative to t
		minute := t.Hour()*60 + t.Minute() - day*minutesPerDay
		if p.days[(int(t.Weekday())+day+7)%7] && p.from-p.lead <= minute && minute < end {
			return true
		}
	}
	return false
}

// At returns the index of the schedule that applies at a time, NoSchedule if none does.
func (c Calendar) At(t time.Time) int {
	for i := range c.schedules {
		if c.schedules[i].applies(t) {
			return i
		}
	}
	return NoSchedule
}

// horizon is the time within which every schedule starts and ends, also if a change of a clock skips it once.
const horizon = 15 * 24 * time.Hour

// Next returns the next time at which another schedule applies, and its index. It returns false if the calendar does
// not change. Clocks change by whole minutes, so the next change is at the start of a minute.
func (c Calendar) Next(t time.Time) (at time.Time, index int, ok bool) {
	if len(c.schedules) == 0 {
		return at, NoSchedule, false
	}
	current := c.At(t)
	for at = t.Truncate(time.Minute).Add(time.Minute); at.Sub(t) < horizon; at = at.Add(time.Minute) {
		if index = c.At(at); index != current {
			return at, index, true
		}
	}
	return time.Time{}, current, false
}

// compare records overlaps, and returns errors for schedules that never apply because earlier ones always do. It looks
// at a week of winter and a week of summer.
func (c *Calendar) compare(schedules []Schedule, path *field.Path) (errs field.ErrorList) {
	if len(schedules) < 2 {
		return nil
	}
	applied, overlapped := make([]bool, len(schedules)), make([]int, len(schedules))
	for i := range overlapped {
		overlapped[i] = NoSchedule
	}
	for _, start := range []time.Time{time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), time.Date(2026, 7, 6, 0, 0, 0, 0, time.UTC)} {
		for at := start; at.Sub(start) < 7*24*time.Hour; at = at.Add(time.Minute) {
			first := c.At(at)
			for i := max(first, 0); i < len(schedules); i++ {
				switch {
				case i == first:
					applied[i] = true
				case overlapped[i] == NoSchedule && c.schedules[i].applies(at):
					overlapped[i] = first
				}
			}
		}
	}
	for i, other := range overlapped {
		switch {
		case !applied[i]:
			errs = append(errs, field.Invalid(path.Index(i), schedules[i].String(),
				"never applies: earlier schedules apply at all of its times; put it before them or remove it"))
		case other != NoSchedule:
			c.Warnings = append(c.Warnings, fmt.Sprintf("spec.schedules[%d] (%s) overlaps spec.schedules[%d] (%s), which applies then: "+
				"the first in the list applies", i, schedules[i], other, schedules[other]))
		}
	}
	return errs
}

// String returns the schedule in the form "Mon-Fri 07:30-19:00 Europe/Berlin".
func (s Schedule) String() string {
	days, zone := s.Days, s.TimeZone
	if days == "" {
		days = "every day"
	}
	if zone == "" {
		zone = "UTC"
	}
	return fmt.Sprintf("%s %s-%s %s", days, s.From, s.To, zone)
}
