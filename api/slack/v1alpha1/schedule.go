package v1alpha1

import (
	"cmp"
	"fmt"
	"iter"
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
	// Overlaps describes schedules that apply at the same time as an earlier one.
	Overlaps []string
}

// parsedSchedule is a schedule in the terms of a clock. from and to are minutes of the day.
//
// +kubebuilder:object:generate=false
type parsedSchedule struct {
	days     [7]bool
	from, to int
	// lead is the time before from at which the schedule begins to apply, rounded up to minutes.
	lead int
	zone *time.Location
}

// Phase states which schedules apply at a time.
//
// +kubebuilder:object:generate=false
type Phase struct {
	// Schedule is the index of the schedule that applies, NoSchedule if none does.
	Schedule int
	// Ahead has bit i set if schedule i starts within its lead time.
	Ahead uint16
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
	}
	if len(errs) == 0 {
		errs = c.compare(s.Schedules, path)
	}
	return c, errs
}

// Effective returns the rate and the minimum in a phase: those of the schedule that applies, or the higher ones of schedules that start
// within their lead time.
func (s *ResourceSlackSpec) Effective(p Phase) (minRate string, minimum *Amount) {
	of := func(schedule int) (string, *Amount) {
		if schedule == NoSchedule {
			return s.MinRate, s.Minimum
		}
		active := &s.Schedules[schedule]
		return cmp.Or(active.MinRate, s.MinRate), cmp.Or(active.Minimum, s.Minimum)
	}
	minRate, minimum = of(p.Schedule)
	for i := range s.Schedules {
		if p.Ahead&(1<<i) == 0 {
			continue
		}
		rate, amount := of(i)
		higher, _ := ParseRate(rate) // valid
		if lower, _ := ParseRate(minRate); higher > lower {
			minRate = rate
		}
		minimum = minimum.max(amount)
	}
	return minRate, minimum
}

// max returns the higher amount of each resource. Both amounts may be nil.
func (a *Amount) max(b *Amount) *Amount {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	higher := *a
	if a.CPU == nil || b.CPU != nil && b.CPU.Cmp(*a.CPU) > 0 {
		higher.CPU = b.CPU
	}
	if a.Memory == nil || b.Memory != nil && b.Memory.Cmp(*a.Memory) > 0 {
		higher.Memory = b.Memory
	}
	if a.Placeholders == nil || b.Placeholders != nil && *b.Placeholders > *a.Placeholders {
		higher.Placeholders = b.Placeholders
	}
	return &higher
}

// parse parses a schedule.
func (s *Schedule) parse(path *field.Path) (p parsedSchedule, errs field.ErrorList) {
	var ok bool
	if p.days, ok = parseDays(s.Days); !ok {
		errs = append(errs, field.Invalid(path.Child("days"), s.Days, "must be days and ranges such as Mon-Fri or Sat,Sun"))
	}
	if p.from, ok = parseMinutes(s.From); !ok || p.from == minutesPerDay {
		errs = append(errs, field.Invalid(path.Child("from"), s.From, "must be a time of day from 00:00 to 23:59"))
	}
	if p.to, ok = parseMinutes(s.To); !ok {
		errs = append(errs, field.Invalid(path.Child("to"), s.To, "must be a time of day from 00:00 to 24:00"))
	}
	if s.From == s.To || p.from == 0 && p.to == 0 {
		errs = append(errs, field.Invalid(path.Child("to"), s.To, "must differ from from: the schedule never applies; a day ends at 24:00"))
	}
	var err error
	p.lead = int(ptr.Deref(s.LeadSeconds, 0)+59) / 60
	if p.zone, err = time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == time.Local.String() {
		errs = append(
			errs,
			field.Invalid(path.Child("timeZone"), s.TimeZone, "must be the name of an IANA time zone such as Europe/Berlin"),
		)
	}
	if s.MinRate == "" && s.Minimum == nil {
		errs = append(errs, field.Required(path.Child("minRate"), "minRate or minimum must be set"))
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
// starts ends on the next day; days are those on which it starts.
func (p *parsedSchedule) applies(t time.Time) bool {
	t = t.In(p.zone)
	day, minute := t.Weekday(), t.Hour()*60+t.Minute()
	if p.from < p.to {
		return p.days[day] && p.from <= minute && minute < p.to
	}
	return p.days[day] && minute >= p.from || p.days[(day+6)%7] && minute < p.to
}

// phases returns the phases of the minute of a time and of later minutes, each with its first time. A schedule is ahead if it is the one
// that applies later within its lead time.
func (c Calendar) phases(t time.Time) iter.Seq2[time.Time, Phase] {
	start := t.Truncate(time.Minute)
	var active []int // by minute
	activeAt := func(minute int) int {
		for i := len(active); i <= minute; i++ {
			active = append(active, c.active(start.Add(time.Duration(i)*time.Minute)))
		}
		return active[minute]
	}
	// seen are the minutes at which a schedule was looked for, and last the last one at which it applies.
	seen, last := make([]int, len(c.schedules)), make([]int, len(c.schedules))
	return func(yield func(time.Time, Phase) bool) {
		for minute := 0; ; minute++ {
			p := Phase{Schedule: activeAt(minute)}
			for i := range c.schedules {
				for ; seen[i] <= minute+c.schedules[i].lead; seen[i]++ {
					if activeAt(seen[i]) == i {
						last[i] = seen[i]
					}
				}
				if last[i] > minute && p.Schedule != i {
					p.Ahead |= 1 << i
				}
			}
			if !yield(start.Add(time.Duration(minute)*time.Minute), p) {
				return
			}
		}
	}
}

// At returns the phase at a time.
func (c Calendar) At(t time.Time) (p Phase) {
	for _, p = range c.phases(t) {
		break
	}
	return p
}

// active returns the index of the schedule that applies at a time, NoSchedule if none does.
func (c Calendar) active(t time.Time) int {
	for i := range c.schedules {
		if c.schedules[i].applies(t) {
			return i
		}
	}
	return NoSchedule
}

// horizon is the time within which every schedule starts and ends, also if a change of a clock skips it once.
const horizon = 15 * 24 * time.Hour

// Next returns the time of the next phase, and the phase. It returns false if the calendar does not change. Clocks change by whole
// minutes, so the next phase begins with a minute.
func (c Calendar) Next(t time.Time) (at time.Time, next Phase, ok bool) {
	current := c.At(t)
	if len(c.schedules) == 0 {
		return at, current, false
	}
	for at, next = range c.phases(t) {
		if next != current || at.Sub(t) >= horizon {
			break
		}
	}
	if next == current {
		return time.Time{}, current, false
	}
	return at, next, true
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
			first := c.active(at)
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
			c.Overlaps = append(c.Overlaps, fmt.Sprintf("spec.schedules[%d] (%s) overlaps spec.schedules[%d] (%s), which applies then: "+
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
