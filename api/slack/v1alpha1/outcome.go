package v1alpha1

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outcome states how long pods of the pool waited for a node. It changes at most once in five minutes.
type Outcome struct {
	// From and To are the period: at most the last 24 hours, and at most the time for which the controller runs.
	From metav1.Time `json:"from"`
	To   metav1.Time `json:"to"`
	// AtOnce is the number of pods that got a node of the pool within 10 seconds of their creation, Waited the number
	// of pods that got one later.
	AtOnce int64 `json:"atOnce"`
	Waited int64 `json:"waited"`
	// P99WaitSeconds is the time within which 99% of all these pods had a node, LongestWaitSeconds the longest wait.
	P99WaitSeconds     int64 `json:"p99WaitSeconds"`
	LongestWaitSeconds int64 `json:"longestWaitSeconds"`
}

// ParseWait parses a percentage of pods and the time within which they must have a node, such as p99=5s. The error is a
// description of valid values.
func ParseWait(text string) (percent float64, wait time.Duration, err error) {
	const form = "a percentile and a time of whole seconds such as p99=5s or p99.9=1m"
	name, duration, found := strings.Cut(text, "=")
	number, isPercentile := strings.CutPrefix(name, "p")
	percent, err = strconv.ParseFloat(number, 64)
	wait, durationErr := time.ParseDuration(duration)
	switch {
	case !found || !isPercentile || err != nil || durationErr != nil || wait%time.Second != 0:
		return 0, 0, errors.New(form)
	case percent <= 0 || percent > 100 || math.IsNaN(percent):
		return 0, 0, errors.New(form + ", with a percentile of more than p0 up to p100")
	case wait <= 0:
		return 0, 0, errors.New(form + ", with a time of at least 1s: pods wait for the scheduler, too")
	}
	return percent, wait, nil
}
