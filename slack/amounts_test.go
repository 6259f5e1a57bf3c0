package slack

import (
	"math"
	"testing"
)

func TestAmountsString(t *testing.T) {
	const gibibyte = 1 << 30
	for want, amounts := range map[string]amounts{
		"0 CPU and 0Mi memory":          {},
		"1500m CPU and 2Gi memory":      {cpuIndex: 1500, memoryIndex: 2 * gibibyte},
		"2 CPU and 1536Mi memory":       {cpuIndex: 2000, memoryIndex: 1.5 * gibibyte},
		"100m CPU and 1Mi memory":       {cpuIndex: 100, memoryIndex: 1},              // rounded up
		"1 CPU and 1Gi memory":          {cpuIndex: 1000, memoryIndex: gibibyte - 1},  // rounded up
		"3 CPU and 8589934592Gi memory": {cpuIndex: 3000, memoryIndex: math.MaxInt64}, // 2^63 / 2^30
	} {
		if got := amounts.String(); got != want {
			t.Errorf("%d: got %q, want %q", amounts, got, want)
		}
	}
}
