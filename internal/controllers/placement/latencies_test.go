package placement

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A latency is measured once, from the first change that has not been written, also if
// writes fail in between.
func TestLatencies(t *testing.T) {
	key, other := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	var d latencies
	expect := func(step string, key types.NamespacedName, want int64) {
		t.Helper()
		since, changed := d.finish(key)
		if changed != (want > 0) || changed && !since.Equal(at(want)) {
			t.Errorf("%s: since %v (%v), want second %d", step, since, changed, want)
		}
	}
	expect("no change", key, 0)
	d.changed(key, at(1))
	d.changed(key, at(2))
	expect("not decided", key, 0)
	d.start(key)
	d.changed(key, at(3)) // after the decision started
	expect("two changes", key, 1)
	expect("already measured", key, 0)
	d.start(key)
	d.changed(key, at(4))
	d.start(key) // after a failed write
	expect("write retried", key, 3)
	d.start(key)
	expect("no change since", key, 0)
	d.changed(key, at(5))
	d.start(other)
	expect("other placement", other, 0)
	if len(d.deciding) != 0 || len(d.waiting) != 1 {
		t.Errorf("left: deciding %v, waiting %v", d.deciding, d.waiting)
	}
}
