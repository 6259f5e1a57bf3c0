package telemetry

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// TestWatch checks that the metrics of a source are those of the first store whose context is not done.
func TestWatch(t *testing.T) {
	collector := &Collector{}
	// The maximum age of the store tells which one is collected.
	collected := func() string {
		for seconds, age := range map[string]time.Duration{"60": time.Minute, "120": 2 * time.Minute} {
			want := "# HELP plimsoll_load_max_age_seconds [ALPHA] Maximum age of a reading that is used.\n" +
				"# TYPE plimsoll_load_max_age_seconds gauge\nplimsoll_load_max_age_seconds{source=\"s\"} " + seconds + "\n"
			if testutil.CollectAndCompare(collector, strings.NewReader(want), "plimsoll_load_max_age_seconds") == nil {
				return age.String()
			}
		}
		return "none"
	}
	first, stop := context.WithCancel(t.Context())
	collector.Watch(first, "s", load.NewStore(time.Minute, nil))
	collector.Watch(t.Context(), "s", load.NewStore(2*time.Minute, nil))
	if got := collected(); got != "1m0s" {
		t.Errorf("with two stores of one source: maximum age %s, want 1m0s of the first", got)
	}
	stop()
	eventually.True(t, "the first store is still collected", nil, func(context.Context) (bool, error) { return collected() == "none", nil })
	collector.Watch(t.Context(), "s", load.NewStore(2*time.Minute, nil))
	if got := collected(); got != "2m0s" {
		t.Errorf("after the first store was removed: maximum age %s, want 2m0s of the second", got)
	}
}
