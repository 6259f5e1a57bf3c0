package v1alpha1

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Millionth is the unit of rates: a rate of 100,000 is 10%.
const Millionth = 1_000_000

// HighRate is the highest rate, in millionths, that is valid without allowHighRate, and in AnnotationSlack: 200%.
const HighRate = 2 * Millionth

// AllowHighRateFlag is the name of the flag that permits rates above HighRate in other flags.
const AllowHighRateFlag = "allow-high-rate"

// RateForm describes the valid rates in errors and help texts.
const RateForm = "a percentage such as 10%, or a fraction of at most 1 such as 0.1"

// ratePattern matches the valid rates, as the pattern in the CRD does.
var ratePattern = regexp.MustCompile(`^([0-9]{1,4}([.][0-9]{1,4})?%|0([.][0-9]{1,6})?|1([.]0{1,6})?)$`)

// ParseRate parses a rate and returns it in millionths: a percentage from 0% to 9999.9999%, such as
// 10%, or a fraction from 0 to 1, such as 0.1. It does not refuse rates above HighRate.
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

// ParseRateFlag parses the rate in a flag and returns it in millionths. The error names the flag, and
// refuses rates above HighRate unless they are allowed.
func ParseRateFlag(flag, text string, allowHighRate bool) (int64, error) {
	rate, err := ParseRate(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--%s: %w", flag, err)
	case rate > HighRate && !allowHighRate:
		return 0, fmt.Errorf("--%s: invalid value %q: must be at most 200%% unless --%s is set", flag, text, AllowHighRateFlag)
	}
	return rate, nil
}
