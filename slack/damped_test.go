package slack

import (
	"testing"

	"pgregory.net/rapid"
)

// TestDampedIsMaximum checks that the number is the highest number that was wanted in the last coolDown seconds: a number
// is wanted until the next one.
func TestDampedIsMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d damped[int64]
		var times, values []int64
		now := rapid.Int64Range(0, 1e9).Draw(t, "start")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, 10, 59, 120, 599, 600, 601, 3000}).Draw(t, "seconds")
			times, values = append(times, now), append(values, rapid.Int64Range(0, 9).Draw(t, "wanted"))
			last := len(values) - 1
			want := values[last]
			for i := range last {
				if times[i+1] > now-coolDown {
					want = max(want, values[i])
				}
			}
			if got, end := d.Next(values[last], now, isMore); got != want || (end != 0) != (got > values[last]) {
				t.Fatalf("times %v, wanted %v: %d until %d, want %d", times, values, got, end, want)
			}
			if len(d.candidates) > 10 {
				t.Fatalf("%d candidates of 10 numbers", len(d.candidates))
			}
		}
	})
}
