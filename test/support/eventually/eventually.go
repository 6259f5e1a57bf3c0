// Package eventually waits in tests for a condition to become true.
package eventually

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Condition reports whether the wait of a test is over. An error ends the wait, too.
type Condition = wait.ConditionWithContextFunc

// Limit is how long True waits: much longer than anything takes, also on a machine that is ten times as busy as usual,
// because only a test that fails waits for so long.
const Limit = 3 * time.Minute

// True waits for up to Limit until a condition is true. If it does not become true, True fails
// the test with the message and the log of the program under test, which may be nil.
func True(t testing.TB, message string, log fmt.Stringer, condition Condition) {
	t.Helper()
	TrueWithin(t, Limit, 20*time.Millisecond, message, log, condition)
}

// TrueWithin is True with its own timeout and polling interval.
func TrueWithin(t testing.TB, timeout, interval time.Duration, message string, log fmt.Stringer, condition Condition) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), interval, timeout, true, condition)
	switch {
	case err != nil && log != nil:
		t.Fatalf("%s: %v\n%s", message, err, log)
	case err != nil:
		t.Fatalf("%s: %v", message, err)
	}
}
