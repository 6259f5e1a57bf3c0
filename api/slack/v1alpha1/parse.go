package v1alpha1

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Millionth is the unit of rates: a rate of 100,000 is 10%.
const Millionth = 1_000_000

// MaxRate is the highest valid rate in millionths, also in AnnotationSlack: 200%. A higher one is usually a mistake.
const MaxRate = 2 * Millionth

// RateForm describes the valid rates in errors and help texts.
const RateForm = "a percentage such as 10%, or a fraction of at most 1 such as 0.1"

// ratePattern matches the valid rates, as the pattern in the CRD does.
var ratePattern = regexp.MustCompile(`^([0-9]{1,4}([.][0-9]{1,4})?%|0([.][0-9]{1,6})?|1([.]0{1,6})?)$`)

// ParseRate parses a rate and returns it in millionths: a percentage from 0% to 9999.9999%, such as
// 10%, or a fraction from 0 to 1, such as 0.1. It does not refuse rates above MaxRate.
func ParseRate(text string) (int64, error) {
	if !ratePattern.MatchString(text) {
		return 0, fmt.Errorf("invalid value %q: must be %s", text, RateForm)
	}
	number, percent := strings.CutSuffix(text, "%")
	value, _ := strconv.ParseFloat(number, 64) // the pattern permits only numbers
	if percent {
		value /= 100
	}
	return int64(math.Round(value * Millionth)), nil
}

// ParseRateFlag parses the rate in a flag, at most MaxRate, and returns it in millionths. The error names the flag.
func ParseRateFlag(flag, text string) (int64, error) {
	rate, err := ParseRate(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--%s: %w", flag, err)
	case rate > MaxRate:
		return 0, fmt.Errorf("--%s: invalid value %q: must be at most 200%%", flag, text)
	}
	return rate, nil
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
