package format

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

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
