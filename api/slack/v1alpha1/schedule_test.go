package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func calendarOf(t *testing.T, schedules ...Schedule) Calendar {
	t.Helper()
	c, errs := (&ResourceSlackSpec{Schedules: schedules}).Calendar()
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return c
}

func TestCalendar(t *testing.T) {
	office := Schedule{Days: "Mon-Fri", From: "07:30", To: "19:00", TimeZone: "Europe/Berlin", MinRate: "30%"}
	night := Schedule{From: "22:00", To: "06:00", MinRate: "1%"}
	weekend := Schedule{Days: "Sat,Sun", From: "00:00", To: "24:00", MinRate: "2%"}
	// 02:30 does not exist in Berlin on 29 March 2026: the clock goes from 02:00 (+1) to 03:00 (+2). 02:30 is twice on
	// 25 October: the clock goes from 03:00 (+2) to 02:00 (+1).
	ahead := Schedule{Days: "Mon", From: "00:05", To: "24:00", MinRate: "2%", LeadSeconds: new(int32(570))}
	early := Schedule{Days: "Sun", From: "02:15", To: "02:45", TimeZone: "Europe/Berlin", MinRate: "5%"}
	for name, tc := range map[string]struct {
		schedules []Schedule
		at        string
		active    int
		next      string
		nextIndex int
	}{
		"before office hours, winter":   {[]Schedule{office}, "2026-01-05T06:29:59Z", -1, "2026-01-05T06:30:00Z", 0},
		"office hours, summer":          {[]Schedule{office}, "2026-07-06T05:30:00Z", 0, "2026-07-06T17:00:00Z", -1},
		"over the change of the clock":  {[]Schedule{office}, "2026-03-27T18:00:00Z", -1, "2026-03-30T05:30:00Z", 0},
		"over midnight":                 {[]Schedule{night}, "2026-01-05T23:59:00Z", 0, "2026-01-06T06:00:00Z", -1},
		"the first of two":              {[]Schedule{weekend, night}, "2026-01-10T23:00:00Z", 0, "2026-01-12T00:00:00Z", 1},
		"the first of two, other":       {[]Schedule{night, weekend}, "2026-01-10T21:59:00Z", 1, "2026-01-10T22:00:00Z", 0},
		"a lead time on the day before": {[]Schedule{ahead}, "2026-01-04T23:54:59Z", -1, "2026-01-04T23:55:00Z", 0},
		"a time that does not exist":    {[]Schedule{early}, "2026-03-29T00:00:00Z", -1, "2026-04-05T00:15:00Z", 0},
		"a time that is twice":          {[]Schedule{early}, "2026-10-25T00:20:00Z", 0, "2026-10-25T00:45:00Z", -1},
		"a time that is twice, then":    {[]Schedule{early}, "2026-10-25T00:45:00Z", -1, "2026-10-25T01:15:00Z", 0},
		"always":                        {[]Schedule{{From: "00:00", To: "24:00", MinRate: "1%"}}, "2026-01-05T00:00:00Z", 0, "", 0},
		"none":                          {nil, "2026-01-05T00:00:00Z", -1, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tc.at)
			must.Succeed(t, err)
			c := calendarOf(t, tc.schedules...)
			next, index, ok := c.Next(at)
			text := ""
			if ok {
				text = next.UTC().Format(time.RFC3339)
			}
			if got := c.At(at); got != tc.active || text != tc.next || index != tc.nextIndex {
				t.Errorf("schedule %d, then %d at %s; want %d, then %d at %s", got, index, text, tc.active, tc.nextIndex, tc.next)
			}
		})
	}
}

// TestCalendarAgreesWithOracle compares the schedules of random weeks, minute by minute, with an oracle that reads the clock as text
// and lists the days of each schedule, and the next change with a search of the oracle.
func TestCalendarAgreesWithOracle(t *testing.T) {
	names := []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	rapid.Check(t, func(t *rapid.T) {
		var schedules []Schedule
		for i := range rapid.IntRange(1, 3).Draw(t, "schedules") {
			day := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 7, rapid.ID[string]).Draw(t, "days")
			clock := func(name string) string {
				return fmt.Sprintf(
					"%02d:%02d", rapid.IntRange(0, 23).Draw(t, name+" hour"), rapid.SampledFrom([]int{0, 15, 59}).Draw(t, name),
				)
			}
			s := Schedule{
				Days:    strings.Join(day, ","),
				From:    clock("from"),
				To:      clock("to"),
				MinRate: fmt.Sprintf("%d%%", i),
				TimeZone: rapid.SampledFrom(
					[]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"},
				).Draw(t, "zone"),
				LeadSeconds: new(rapid.SampledFrom([]int32{0, 0, 570, 3600}).Draw(t, "lead")),
			}
			schedules = append(schedules, s)
		}
		c, errs := (&ResourceSlackSpec{Schedules: schedules}).Calendar()
		if len(errs) > 0 {
			return // never applies
		}
		oracle := func(at time.Time) int {
			return slices.IndexFunc(schedules, func(s Schedule) bool {
				zone, _ := time.LoadLocation(s.TimeZone)
				// The clock as a time without changes.
				clock, _ := time.Parse("2006-01-02 15:04", at.In(zone).Format("2006-01-02 15:04"))
				for day := -1; day <= 1; day++ {
					date := clock.AddDate(0, 0, day)
					from, _ := time.Parse("2006-01-02 15:04", date.Format("2006-01-02 ")+s.From)
					to, _ := time.Parse("2006-01-02 15:04", date.Format("2006-01-02 ")+s.To)
					if !to.After(from) {
						to = to.AddDate(0, 0, 1)
					}
					lead := (time.Duration(*s.LeadSeconds)*time.Second + 59*time.Second).Truncate(time.Minute)
					if strings.Contains(s.Days, date.Format("Mon")) && !clock.Before(from.Add(-lead)) && clock.Before(to) {
						return true
					}
				}
				return false
			})
		}
		// Weeks of the year, some with a change of a clock.
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 364*24).Draw(t, "hour")) * time.Hour)
		next, index, changes := c.Next(start)
		for minute := range 8 * 24 * 60 {
			at := start.Add(time.Duration(minute) * time.Minute)
			want := oracle(at)
			if got := c.At(at); got != want {
				t.Fatalf("%s: schedule %d, want %d", at, got, want)
			}
			if changes && !at.Before(next) {
				if want != index || minute == 0 {
					t.Fatalf("%s: next schedule %d, want %d", next, index, want)
				}
				return
			}
			if want != oracle(start) {
				t.Fatalf("%s: changes to %d, the next change is %s (%t)", at, want, next, changes)
			}
		}
	})
}

// TestInvalidSchedules checks that errors name the field, the value and what is allowed.
func TestInvalidSchedules(t *testing.T) {
	valid := Schedule{From: "07:00", To: "19:00", MinRate: "10%"}
	for _, tc := range []struct {
		change func(*Schedule)
		want   string
	}{
		{func(s *Schedule) { s.Days = "Mo" }, `spec.schedules[0].days: Invalid value: "Mo": must be days and ranges such as Mon-Fri or Sat,Sun`},
		{func(s *Schedule) { s.From = "24:00" }, `spec.schedules[0].from: Invalid value: "24:00": must be a time of day such as 07:30, from 00:00 to 23:59`},
		{func(s *Schedule) { s.To = "7pm" }, `spec.schedules[0].to: Invalid value: "7pm": must be a time of day such as 19:30, up to 24:00`},
		{func(s *Schedule) { s.TimeZone = "Mars/Olympus" }, `spec.schedules[0].timeZone: Invalid value: "Mars/Olympus": must be the name of an IANA`},
		{func(s *Schedule) { s.TimeZone = "Local" }, `spec.schedules[0].timeZone: Invalid value: "Local"`},
		{
			func(s *Schedule) { s.Minimum = &Amount{CPU: new(resource.MustParse("8Gi"))} },
			`spec.schedules[0].minimum.cpu: Invalid value: "8Gi": must be a number of CPUs such as 8 or 500m`,
		},
		{
			func(s *Schedule) { s.Minimum = &Amount{Memory: new(resource.MustParse("8"))} },
			`spec.schedules[0].minimum.memory: Invalid value: "8": must be at least 1Mi; did you mean Gi?`,
		},
	} {
		spec := ResourceSlackSpec{MinRate: "10%", Schedules: []Schedule{valid}}
		spec.Default()
		must.Succeed(t, spec.Validate())
		tc.change(&spec.Schedules[0])
		if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
	all := Schedule{From: "00:00", To: "24:00", MinRate: "1%"}
	spec := ResourceSlackSpec{MinRate: "10%", Schedules: []Schedule{all, valid}}
	spec.Default()
	const want = `spec.schedules[1]: Invalid value: "every day 07:00-19:00 UTC": never applies: earlier schedules apply at all of its times`
	if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	c := calendarOf(t, valid, all)
	if want := []string{"spec.schedules[1] (every day 00:00-24:00 UTC) overlaps spec.schedules[0] (every day 07:00-19:00 UTC), " +
		"which applies then: the first in the list applies"}; !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings %q, want %q", c.Warnings, want)
	}
}
