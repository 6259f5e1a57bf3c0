package race

import "github.com/plimsoll-k8s/plimsoll/internal/algo/bootstrap"

// confirmationLevel is the confidence level at which a winner is confirmed.
const confirmationLevel = 0.95

// intervalSeed seeds the resampling of the interval.
const intervalSeed = 1

// Confirm compares a challenger with the current candidate in blocks that the race has not used, at least 2, and reports whether the
// challenger is better: whether the interval of the mean difference, challenger minus current, is below 0. If both are equally
// good, that is so with a probability of about half of 1 - confirmationLevel.
func Confirm(current, challenger []float64) (bootstrap.Interval, bool, error) {
	interval, err := bootstrap.Paired(current, challenger, confirmationLevel, intervalSeed)
	return interval, err == nil && interval.High < 0, err
}
