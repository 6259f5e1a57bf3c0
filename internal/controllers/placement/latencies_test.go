package placement

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A delay counts from the first change that has not been written, through
// writes that fail, and never twice.
func TestLatencies(t *testing.T) {
	key, other := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	var d latencies
	expect := func(what string, key types.NamespacedName, want int64) {
		t.Helper()
		since, changed := d.finish(key)
		if changed != (want > 0) || changed && !since.Equal(at(want)) {
			t.Errorf("%s: since %v (%v), want second %d", what, since, changed, want)
		}
	}
	expect("before anything", key, 0)
	d.changed(key, at(1))
	d.changed(key, at(2))
	expect("not decided yet", key, 0)
	d.start(key)
	d.changed(key, at(3)) // too late for this decision
	expect("two changes", key, 1)
	expect("told", key, 0)
	d.start(key)
	d.changed(key, at(4))
	d.start(key) // the write failed
	expect("a write that failed", key, 3)
	d.start(key)
	expect("nothing changed", key, 0)
	d.changed(key, at(5))
	d.start(other)
	expect("another", other, 0)
	if len(d.deciding) != 0 || len(d.waiting) != 1 {
		t.Errorf("kept %v, %v", d.deciding, d.waiting)
	}
}
