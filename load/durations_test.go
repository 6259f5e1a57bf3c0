package load

import (
	"testing"
	"time"
)

// TestDurations counts durations with the bounds 10, 30, 100 and 300 ms, 1, 3 and 10 s.
func TestDurations(t *testing.T) {
	var d Durations
	for _, duration := range []time.Duration{10 * time.Millisecond, 11 * time.Millisecond, 2 * time.Second, time.Minute} {
		d.add(duration)
	}
	if want := (Durations{Count: 4, Sum: 62*time.Second + 21*time.Millisecond, Within: [7]int{1, 2, 2, 2, 2, 3, 3}}); d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
	if len(d.Within) != len(DurationBounds) {
		t.Errorf("%d counts for %d bounds", len(d.Within), len(DurationBounds))
	}
}
