package recording

import "math"

// stream has the numbers of the independent random streams of a resource.
type stream struct{ pod, phase, own, group, workload, workloadPhase uint64 }

// streams has a different number for each stream; limitStream has the number 9.
var streams = [usageResources]stream{
	usageCPU:    {1, 2, 3, 4, 10, 11},
	usageMemory: {5, 6, 7, 8, 12, 13},
}

const limitStream = 9

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014): every bit of its argument changes every
// bit of its result with a probability near one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// golden is 2^64 over the golden ratio, the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// uniform returns a number in (0, 1) that depends on all of its arguments.
func uniform(seed, stream, a, b uint64) float64 {
	h := mix(seed + golden*stream)
	h = mix(h + golden*(a+1))
	h = mix(h + golden*(b+1))
	return (float64(h>>11) + 0.5) / (1 << 53)
}

// normal returns a standard normal number that depends on all of its arguments.
func normal(seed, stream, a, b uint64) float64 {
	return math.Sqrt2 * math.Erfinv(2*uniform(seed, stream, a, b)-1)
}
