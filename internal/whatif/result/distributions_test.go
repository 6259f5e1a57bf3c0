package result

import (
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	w := Waits{0: 98, 7: 1, 130: 1}
	for percent, want := range map[float64]time.Duration{50: 0, 98: 0, 98.5: 7 * time.Second, 99: 7 * time.Second, 100: 130 * time.Second} {
		if got := w.Percentile(percent); got != want {
			t.Errorf("p%v is %s, want %s", percent, got, want)
		}
	}
	// 99.9% of 1,000 pods are 999, and of 83,000 pods 82,917: 99.9 x 83,000 / 100 is 82917.00000000001 with rounding errors.
	for _, waits := range []Waits{{0: 999, 130: 1}, {0: 82_917, 130: 83}} {
		if got := waits.Percentile(99.9); got != 0 {
			t.Errorf("p99.9 of %d pods is %s, want 0s", waits.Pods(), got)
		}
	}
	if got := (Waits{}).Percentile(99); got != 0 {
		t.Errorf("p99 of nothing %s, want 0", got)
	}
}
