package whatif

import (
	"math"
	"strconv"
	"strings"
)

// thin separates thousands: a narrow space that does not break.
const thin = "\u202f"

// minus is as wide as plus, so that columns line up.
const minus = "\u2212"

// maxDecimals is how many digits after the point tell something of a figure.
const maxDecimals = 3

// finite reports whether a value can be shown and drawn.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// decimals returns how many digits after the point tell something of values, all
// of which are shown alike: none of whole numbers, and about four digits in all.
func decimals(values ...float64) int {
	var most float64
	whole := true
	for _, v := range values {
		if finite(v) {
			most = max(most, math.Abs(v))
			whole = whole && v == math.Trunc(v)
		}
	}
	switch {
	case whole || most >= 1000:
		return 0
	case most >= 100:
		return 1
	case most >= 10:
		return 2
	}
	return maxDecimals
}

// number returns a value with so many decimals and its thousands apart.
func number(v float64, decimals int) string {
	if !finite(v) {
		return "–"
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', decimals, 64), ".")
	var b strings.Builder
	if v < 0 && strings.Trim(whole+fraction, "0") != "" {
		b.WriteString(minus)
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteString(thin)
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// count returns a whole number with its thousands apart.
func count(n int) string { return number(float64(n), 0) }

// signed is number with a plus before what is more than nothing.
func signed(v float64, decimals int) string {
	text := number(v, decimals)
	if v > 0 && strings.Trim(text, "0.") != "" {
		return "+" + text
	}
	return text
}

// percent says how much a difference is of what it is a difference to, nothing if
// that cannot be said, or is so much that it tells nothing.
func percent(difference, of float64) string {
	if of == 0 || !finite(difference) || !finite(of) {
		return ""
	}
	part := 100 * difference / math.Abs(of)
	switch {
	case !finite(part) || difference == 0 || math.Abs(part) > 999:
		return ""
	case math.Abs(part) < 10:
		return signed(part, 1) + thin + "%"
	}
	return signed(part, 0) + thin + "%"
}

// duration returns seconds as people say them.
func duration(seconds int64) string {
	switch {
	case seconds >= 48*3600 && seconds%3600 == 0:
		return count(int(seconds/86400)) + " d " + count(int(seconds%86400/3600)) + " h"
	case seconds >= 3600:
		return count(int(seconds/3600)) + " h " + count(int(seconds%3600/60)) + " min"
	case seconds >= 60 && seconds%60 == 0:
		return count(int(seconds/60)) + " min"
	}
	return count(int(seconds)) + " s"
}
