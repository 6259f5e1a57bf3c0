package slack

import (
	"testing"

	"pgregory.net/rapid"
)

// TestDamped checks a number with a cool-down of 600 seconds.
func TestDamped(t *testing.T) {
	var d damped[int64]
	for _, step := range []struct{ now, wanted, want int64 }{
		{0, 3, 3},
		{1, 5, 5},
		{2, 4, 5},
		{601, 2, 5},
		{602, 2, 4}, // 4 was wanted until 601
		{603, 1, 4},
		{604, 2, 4},
		{605, 1, 4},
		{1200, 1, 4},
		{1201, 0, 2}, // a dip at the end of the cool-down does not matter
		{1205, 0, 1},
		{1801, 0, 0},
		{1802, 9, 9},
	} {
		if got, end := d.Next(step.wanted, step.now, isMore); got != step.want || (end != 0) != (got > step.wanted) {
			t.Errorf("at %d, wanted %d: %d until %d, want %d", step.now, step.wanted, got, end, step.want)
		}
	}
}

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
			if got, _ := d.Next(values[last], now, isMore); got != want {
				t.Fatalf("times %v, wanted %v: %d, want %d", times, values, got, want)
			}
			if len(d.candidates) > 10 {
				t.Fatalf("%d candidates of 10 numbers", len(d.candidates))
			}
		}
	})
}
