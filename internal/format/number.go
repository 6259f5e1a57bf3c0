// Package format writes amounts, numbers and nouns for messages, tables and reports. In reports, a narrow space separates
// thousands; on terminals, a comma. The number of decimals depends on the size of the values.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

const (
	// ThinSpace separates thousands and units: a narrow no-break space.
	ThinSpace = "\u202f"
	// Minus is the minus sign, which is as wide as a plus sign, so that columns align.
	Minus = "\u2212"
	// None stands for a value that is missing or not finite.
	None = "–"
	// MaxDecimals is the largest number of decimals that Decimals returns.
	MaxDecimals = 3
)

// IsFinite reports whether v is neither NaN nor infinite.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Decimals returns the number of decimals with which to format values that are shown together: none
// if all are integers, otherwise three significant digits of the largest.
func Decimals(values ...float64) int {
	var largest float64
	integers := true
	for _, v := range values {
		if IsFinite(v) {
			largest = max(largest, math.Abs(v))
			integers = integers && v == math.Trunc(v)
		}
	}
	switch { // what rounds to 10 has the decimals of 10
	case integers || largest >= 99.95:
		return 0
	case largest >= 9.995:
		return 1
	case largest >= 0.9995:
		return 2
	}
	return MaxDecimals
}

// Format returns v with the given number of decimals and separated thousands.
func Format(v float64, decimals int) string {
	if !IsFinite(v) {
		return None
	}
	integer, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', decimals, 64), ".")
	var b strings.Builder
	if v < 0 && strings.Trim(integer+fraction, "0") != "" {
		b.WriteString(Minus)
	}
	for i, digit := range integer {
		if i > 0 && (len(integer)-i)%3 == 0 {
			b.WriteString(ThinSpace)
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// Auto formats v with as many decimals as Decimals returns for it.
func Auto(v float64) string { return Format(v, Decimals(v)) }

// plain replaces the characters of reports that terminals and scripts do not expect.
var plain = strings.NewReplacer(ThinSpace+"%", " %", ThinSpace, ",", Minus, "-", None, "-")

// ToPlain replaces the characters of a text for reports that terminals and scripts do not expect.
func ToPlain(text string) string { return plain.Replace(text) }

// Plain is Auto for a terminal: 34,896 or -0.520.
func Plain(v float64) string { return ToPlain(Auto(v)) }

// PlainSigned is Plain with a plus sign before positive values, and "0" for a value that rounds to zero.
func PlainSigned(v float64) string {
	text := Plain(v)
	switch {
	case strings.Trim(text, "0.") == "":
		return "0"
	case v > 0:
		return "+" + text
	}
	return text
}

// Count formats an integer with separated thousands.
func Count(n int) string { return Format(float64(n), 0) }

// Things returns a number of things with separated thousands, and their noun in the form that the number requires.
func Things(n int, noun string) string { return Count(n) + " " + Noun(n, noun) }

// Signed is Format with a plus sign before positive values.
func Signed(v float64, decimals int) string {
	text := Format(v, decimals)
	if v > 0 && strings.Trim(text, "0.") != "" {
		return "+" + text
	}
	return text
}

// Percent returns difference as a signed percentage of base. It returns the empty string if base is
// 0 or the percentage exceeds 999, which is no longer informative.
func Percent(difference, base float64) string {
	if base == 0 || !IsFinite(difference) || !IsFinite(base) {
		return ""
	}
	percentage := 100 * difference / math.Abs(base)
	switch {
	case !IsFinite(percentage) || difference == 0 || math.Abs(percentage) > 999:
		return ""
	case math.Abs(percentage) < 10:
		return Signed(percentage, 1) + ThinSpace + "%"
	}
	return Signed(percentage, 0) + ThinSpace + "%"
}

// Duration formats a number of seconds, such as "90 s", "2 h 30 min" or "3 d 0 h".
func Duration(seconds int64) string {
	switch {
	case seconds >= 48*3600 && seconds%3600 == 0:
		return Count(int(seconds/86400)) + " d " + Count(int(seconds%86400/3600)) + " h"
	case seconds >= 3600:
		return Count(int(seconds/3600)) + " h " + Count(int(seconds%3600/60)) + " min"
	case seconds >= 60 && seconds%60 == 0:
		return Count(int(seconds/60)) + " min"
	}
	return Count(int(seconds)) + " s"
}

// Requests returns the CPU in millicores and the memory in bytes of messages, in the form of tables: "1.5 CPU and 2Gi memory".
func Requests(cpu, memory int64) string {
	return fmt.Sprintf("%s CPU and %s memory", Cores(cpu), Bytes(memory))
}

// Cores returns millicores of tables in cores, with at most three decimals: 10.2 for 10200.
func Cores(milli int64) string {
	return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
}

// Bytes returns bytes of tables with three or four digits: 366Gi, 36.6Gi, 512Mi.
func Bytes(n int64) string {
	value, unit := float64(n), ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if math.Abs(value) < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	parts := 1.0
	switch size := math.Abs(value); {
	case size < 10:
		parts = 100
	case size < 100:
		parts = 10
	}
	return strconv.FormatFloat(math.Round(value*parts)/parts, 'f', -1, 64) + unit
}

// Age returns an age as kubectl does: 15s, 5m, 19h, 3d. A negative age, from a clock that is ahead, is 0s.
func Age(age time.Duration) string { return duration.HumanDuration(max(0, age)) }
