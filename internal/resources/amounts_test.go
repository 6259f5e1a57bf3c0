package resources

import (
	"math"
	"testing"
)

func TestAmountsString(t *testing.T) {
	const gibibyte = 1 << 30
	for want, amounts := range map[string]Amounts{
		"0 CPU and 0 memory":      {},
		"1.5 CPU and 2Gi memory":  {CPU: 1500, Memory: 2 * gibibyte},
		"2 CPU and 1.5Gi memory":  {CPU: 2000, Memory: 1.5 * gibibyte},
		"0.1 CPU and 2Mi memory":  {CPU: 100, Memory: 2 << 20},
		"1 CPU and 1Gi memory":    {CPU: 1000, Memory: gibibyte},
		"3 CPU and 8192Pi memory": {CPU: 3000, Memory: math.MaxInt64}, // 2^63 / 2^50
	} {
		if got := amounts.String(); got != want {
			t.Errorf("%v: got %q, want %q", amounts, got, want)
		}
	}
}
