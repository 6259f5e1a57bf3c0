package base

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// FormatCPU returns the CPU of a list in cores with at most three decimals: 10.2 for 10200m.
func FormatCPU(list v1.ResourceList) string {
	return trimZeros(strconv.FormatFloat(float64(list.Cpu().MilliValue())/1000, 'f', 3, 64))
}

// FormatMemory returns the memory of a list with three or four digits: 366Gi, 36.6Gi, 512Mi.
func FormatMemory(list v1.ResourceList) string {
	value, unit := float64(list.Memory().Value()), ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if math.Abs(value) < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	decimals := 0
	switch size := math.Abs(value); {
	case size < 10:
		decimals = 2
	case size < 100:
		decimals = 1
	}
	return trimZeros(strconv.FormatFloat(value, 'f', decimals, 64)) + unit
}

// FormatAge returns a duration as kubectl does: 15s, 5m, 19h, 3d.
func FormatAge(age time.Duration) string { return duration.HumanDuration(age) }

// FormatCount returns a number with its thousands separated, such as 34,896.
func FormatCount(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = fmt.Sprintf("%s,%s", digits[:i], digits[i:])
	}
	return sign + digits
}

// trimZeros removes trailing zeros of decimals.
func trimZeros(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}
