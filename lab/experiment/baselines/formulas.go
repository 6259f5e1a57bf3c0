package baselines

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const maxScore = 100

// TargetLoadPacking of scheduler-plugins v0.34.7, pkg/trimaran/targetloadpacking/targetloadpacking.go, with the
// defaults of apis/config/v1/defaults.go.
const (
	// target is the utilization of CPU in percent that scores highest.
	target = 40
	// defaultMillicores are predicted for a container without requests and limits, and requestsMultiplier times the
	// request for a container without a limit.
	defaultMillicores  = 1000
	requestsMultiplier = 1.5
)

// targetLoadPacking returns the score of a node whose CPU is predicted to be used to a percentage. The score grows from
// the target at 0 % to 100 at the target, drops to the target right above it, and falls to 0 at 100 %.
func targetLoadPacking(percent float64) int64 {
	switch {
	case percent > 100:
		return 0
	case percent > target:
		return int64(math.Round(target * (100 - percent) / (100 - target)))
	default:
		return int64(math.Round((100-target)*percent/target + target))
	}
}

// predictMillicores returns the CPU that TargetLoadPacking predicts for a container with a request and a limit in
// millicores, 0 for none.
func predictMillicores(request, limit int64) int64 {
	switch {
	case limit > 0:
		return limit
	case request > 0:
		return int64(math.Round(float64(request) * requestsMultiplier))
	default:
		return defaultMillicores
	}
}

// loadVariation returns the score of one resource by LoadVariationRiskBalancing of scheduler-plugins v0.34.7,
// pkg/trimaran/loadvariationriskbalancing/analysis.go, with a margin and a sensitivity of 1: half of the mean, which
// includes the request of the pending pod, and of the deviation is the risk. Both are fractions of allocatable.
func loadVariation(mean, request, deviation float64) float64 {
	return (1 - (clamp(mean+request)+clamp(deviation))/2) * maxScore
}

// LowRiskOverCommitment of scheduler-plugins v0.34.7, pkg/trimaran/lowriskovercommitment/lowriskovercommitment.go and
// beta.go, with the defaults of apis/config/v1/defaults.go.
const (
	smoothingWindow = 5
	riskLimitWeight = 0.5
	// varianceAllowance is the fraction of the highest variance of a beta distribution that is allowed.
	varianceAllowance = 0.99
)

// commitment has the requests and limits of one resource on a node, as fractions of allocatable: with and without the
// pending pod.
type commitment struct {
	request, limit, requestBefore, limitBefore float64
}

// lowRisk returns the risk of one resource. The limits of a pod are at least its requests, so that a pod without limits
// counts with its requests.
func lowRisk(c commitment, mean, deviation float64, measured bool) float64 {
	c.request, c.requestBefore = min(c.request, 1), min(c.requestBefore, 1)
	limitRisk := 0.0
	if c.limit > 1 {
		limitRisk = (c.limit - 1) / (c.limit - c.request)
	}
	loadRisk := 0.0
	if measured {
		loadRisk = 1 - probabilityWithin(c, clamp(mean), clamp(deviation))
	}
	return clamp(riskLimitWeight*limitRisk + (1-riskLimitWeight)*loadRisk)
}

// probabilityWithin returns the probability that the load is at most the requests of the present pods, given that it is
// at most their limits if these are below the capacity.
func probabilityWithin(c commitment, mean, deviation float64) float64 {
	variance := 0.0
	if mean > 0 && mean < 1 {
		variance = mean * (1 - mean)
	}
	deviation = min(deviation*math.Sqrt(smoothingWindow), math.Sqrt(variance*varianceAllowance))
	distribution := func(x float64) float64 { return betaBelow(mean, deviation, x) }
	within := distribution(c.requestBefore)
	if c.limitBefore >= 1 || c.requestBefore > c.limitBefore {
		return within
	}
	if c.limitBefore == 0 {
		return 1
	}
	if fits := mean > 0 && deviation > 0; fits {
		if below := distribution(c.limitBefore); below > 0 {
			return clamp(within / below)
		}
	}
	return within
}

// betaBelow returns the probability that a beta-distributed load with a mean and a deviation is at most x.
func betaBelow(mean, deviation, x float64) float64 {
	switch {
	case mean == 0 || deviation == 0 && mean <= x:
		return 1
	case deviation == 0:
		return 0
	case x >= 1:
		return 1
	case x <= 0:
		return 0
	}
	concentration := mean*(1-mean)/(deviation*deviation) - 1
	return mathext.RegIncBeta(mean*concentration, (1-mean)*concentration, x)
}

// LoadAwareScheduling of Koordinator, pkg/scheduler/plugins/loadaware/load_aware.go at commit
// 01a456b1d70423efbfabe20bf42d3497e4cf1c9b, its estimator in estimator/default_estimator.go, and the defaults of
// pkg/scheduler/apis/config/v1/defaults.go.
const (
	koordCPUFactor, koordMemoryFactor       = 85, 70
	koordCPUThreshold, koordMemoryThreshold = 65, 95
	koordDefaultCPU, koordDefaultMemory     = 250, 200 << 20
)

// koordEstimate returns the estimated usage of a pod: a percentage of its request or limit, whichever is higher, at most
// the limit, and the default without either.
func koordEstimate(request, limit, factor, defaultAmount int64) int64 {
	amount := max(request, limit)
	if amount == 0 {
		return defaultAmount
	}
	estimated := int64(math.Round(float64(amount) * float64(factor) / 100))
	if limit > 0 {
		return min(estimated, limit)
	}
	return estimated
}

// koordScore returns the score of a node: the mean over CPU and memory of the percentage that is left by the estimated
// usage, each rounded down. It is 0 above a threshold, in place of Koordinator's filter.
func koordScore(usedCPU, cpu, usedMemory, memory int64) int64 {
	if exceeds(usedCPU, cpu, koordCPUThreshold) || exceeds(usedMemory, memory, koordMemoryThreshold) {
		return 0
	}
	return (leastUsed(usedCPU, cpu) + leastUsed(usedMemory, memory)) / 2
}

// leastUsed returns the percentage of a capacity that is left, 0 without a capacity.
func leastUsed(used, capacity int64) int64 {
	if capacity == 0 || used > capacity {
		return 0
	}
	return int64(float64(capacity-used) * maxScore / float64(capacity))
}

// exceeds reports whether the percentage of a capacity that is used, rounded, is above a threshold.
func exceeds(used, capacity int64, threshold float64) bool {
	return capacity > 0 && math.Round(float64(used)/float64(capacity)*100) > threshold
}

// Dynamic of Crane (gocrane/crane-scheduler), pkg/plugins/dynamic/stats.go at commit
// 8c25d3194313f23eb93fb4453e87688dd8d6cfb1 and plugins.go in the same folder, pkg/controller/annotator/node.go, and the
// policy of deploy/manifests/dynamic/policy.yaml.
const (
	craneAverageWeight, craneHourWeight, craneDayWeight = 0.2, 0.3, 0.5
	craneAverageThreshold, craneHourThreshold           = 0.65, 0.75
	craneHotScore                                       = 10
)

// craneUsage is the utilization of one resource: the average, and its maxima over an hour and a day.
type craneUsage struct{ average, hour, day float64 }

// crane returns the score of a node: the weighted mean of the fractions that are left of CPU and memory, less 10 for each
// unit of the hot value. It is 0 above a threshold, in place of Crane's filter.
func crane(cpu, memory craneUsage, hotValue int64) int64 {
	sum := 0.0
	for _, u := range []craneUsage{cpu, memory} {
		if u.average > craneAverageThreshold || u.hour > craneHourThreshold {
			return 0
		}
		sum += craneAverageWeight*(1-u.average) + craneHourWeight*(1-u.hour) + craneDayWeight*(1-u.day)
	}
	const weights = 2 * (craneAverageWeight + craneHourWeight + craneDayWeight)
	return min(max(int64(sum*maxScore/weights)-craneHotScore*hotValue, 0), maxScore)
}

// craneHotValue returns the hot value of a node to which pods were bound in the last five minutes and in the last minute:
// one for every five pods, and one for every two pods.
func craneHotValue(inFiveMinutes, inOneMinute int64) int64 { return inFiveMinutes/5 + inOneMinute/2 }

// clamp limits a fraction to [0, 1].
func clamp(x float64) float64 { return min(max(x, 0), 1) }
