package recording

import (
	"fmt"
	"math"
)

// Limits generates the limits of pods without limits.
type Limits struct {
	// CPU and Memory are limits as multiples of the request, at least 1.
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	// Unlimited is the fraction of pods that get no limits.
	Unlimited float64 `json:"unlimited"`
}

// maxRatio bounds limits over requests.
const maxRatio = 100

// DefaultLimits are twice the requests.
var DefaultLimits = Limits{CPU: 2, Memory: 2}

// Validate returns an error that names the field of an invalid value.
func (l Limits) Validate() error {
	isRatio := func(ratio float64) bool { return ratio >= 1 && ratio <= maxRatio }
	switch {
	case !(l.Unlimited >= 0 && l.Unlimited <= 1):
		return fmt.Errorf("unlimited: invalid value %v: must be a number from 0 to 1", l.Unlimited)
	case l.Unlimited < 1 && !isRatio(l.CPU):
		return fmt.Errorf("cpu: invalid value %v: must be a number from 1 to %d", l.CPU, maxRatio)
	case l.Unlimited < 1 && !isRatio(l.Memory):
		return fmt.Errorf("memory: invalid value %v: must be a number from 1 to %d", l.Memory, maxRatio)
	}
	return nil
}

// forPod returns the limits of a pod with the given requests, 0 for no limit. There is no limit
// without a request. Which pods get no limits depends on the seed and the pod alone, so that a
// larger fraction includes the pods of a smaller fraction.
func (l Limits) forPod(seed, pod uint64, cpu, memory int64) (cpuLimit, memoryLimit int64) {
	if uniform(seed, limitStream, pod, 0) < l.Unlimited {
		return 0, 0
	}
	return times(cpu, l.CPU), times(memory, l.Memory)
}

// times returns an amount times a ratio, rounded up and saturated.
func times(amount int64, ratio float64) int64 {
	product := math.Ceil(float64(amount) * ratio)
	if product >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(int64(product), amount)
}

// String describes the limits.
func (l Limits) String() string {
	text := fmt.Sprintf("cpu=%v,memory=%v", l.CPU, l.Memory)
	if l.CPU == l.Memory {
		text = fmt.Sprintf("ratio=%v", l.CPU)
	}
	if l.Unlimited > 0 {
		text += fmt.Sprintf(",unlimited=%v", l.Unlimited)
	}
	return text
}
