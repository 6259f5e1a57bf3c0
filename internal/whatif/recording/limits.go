package recording

import (
	"cmp"
	"fmt"
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/spec"
)

// Limits generates the limits of pods without limits.
type Limits struct {
	// CPU and Memory are limits as multiples of the request, at least 1.
	CPU, Memory float64
	// Unlimited is the fraction of pods that get no limits.
	Unlimited float64
}

// maxRatio bounds limits over requests.
const maxRatio = 100

// ParseLimits parses the value of --limits. It returns several limits if there are
// several ratios:
//
//	ratio=2                      limits are twice the requests
//	ratio=1+1.5+2+4              several ratios
//	ratio=2,memory=1             CPU limits twice, memory limits once the requests
//	ratio=2,unlimited=0.1        a tenth of the pods without limits
func ParseLimits(text string) ([]Limits, error) {
	fields, err := spec.Parse(text)
	if err != nil {
		return nil, err
	}
	ratios := fields.Floats("ratio", 1, maxRatio)
	cpu := fields.Float("cpu", 0, 1, maxRatio)
	memory := fields.Float("memory", 0, 1, maxRatio)
	unlimited := fields.Float("unlimited", 0, 0, 1)
	if ratios == nil {
		if (cpu == 0 || memory == 0) && unlimited < 1 {
			fields.Require("ratio", "numbers from 1 to 100 with + between them, unless cpu and memory are set")
		}
		ratios = []float64{1}
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	sweep := make([]Limits, len(ratios))
	for i, ratio := range ratios {
		sweep[i] = Limits{CPU: cmp.Or(cpu, ratio), Memory: cmp.Or(memory, ratio), Unlimited: unlimited}
	}
	return sweep, nil
}

// ForPod returns the limits of a pod with the given requests, 0 for no limit. There is no limit
// without a request. Which pods get no limits depends on the seed and the pod alone, so that a
// larger fraction includes the pods of a smaller fraction.
func (l Limits) ForPod(seed, pod uint64, cpu, memory int64) (cpuLimit, memoryLimit int64) {
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

// String returns a text from which ParseLimits returns the same limits.
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
