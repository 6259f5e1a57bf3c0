package v1alpha1

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

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
