package predict

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// history is the usage of one pod, in millicores or bytes.
type history struct {
	// seconds is the decaying length of the history, and mean the mean over it.
	seconds, mean float64
	// recent is the mean over about an hour, recentSeconds the decaying length of that hour.
	recent, recentSeconds float64
	periods               periods
}

// decays are factors by which previous readings decay.
type decays struct {
	history, recent float64
}

// volatilityPairs is the weight of the variance of the class in the volatility of a workload, in pairs of periods.
const volatilityPairs = 20

// recentHalfLife is the time in seconds after which a reading counts half in the recent usage of a pod.
const recentHalfLife = 3600

// add adds the usage of some seconds after the previous ones have decayed.
func (h *history) add(x, seconds float64, decay *decays) {
	h.seconds = h.seconds*decay.history + seconds
	h.mean += (x - h.mean) * seconds / h.seconds
	h.recentSeconds = h.recentSeconds*decay.recent + seconds
	h.recent += (x - h.recent) * seconds / h.recentSeconds
}

// remaining returns for how many more seconds the pod is expected to run: as long as it has run, within bounds.
func (h *history) remaining() float64 { return min(max(h.seconds, 3600), 24*3600) }

// PodState is the state of a learner for one pod. The zero value is a new pod.
type PodState struct {
	workload *workloadState
	node     *nodeState
	// reading is the number of the newest reading that has the pod.
	reading uint64
	// created is the second of its creation.
	created float64
	base    [Resources]float64 // 0 without a request
	own     [Resources]history
}

// workloadState is the state of a learner for one workload.
type workloadState struct {
	key     resources.WorkloadKey
	reading uint64
	// request is the largest of its pods.
	request [Resources]float64
	past    [Resources]past
	now     [Resources]pool
	// volatility is the variance over time of the pods in relation to the variance of their class.
	volatility [Resources]ratio
	estimate   [Resources]workloadEstimate
}

// past is the usage of the pods of a workload that have ended, and of the pods that a previous process has seen.
type past struct {
	// pods is their decayed number, seconds the mean length of their histories, mean the mean of their means.
	pods, seconds, mean float64
	// base is the mean of their requests, 0 without a request.
	base float64
}

// add adds the history of a pod that counts as some pods.
func (p *past) add(h *history, base, pods float64) {
	if h.seconds <= 0 || pods <= 0 {
		return
	}
	p.pods += pods
	p.mean += (h.mean - p.mean) * pods / p.pods
	p.seconds += (h.seconds - p.seconds) * pods / p.pods
	p.base += (base - p.base) * pods / p.pods
}

// pool is the usage of the pods of a workload, present and past, in one reading. Variances are in the unit of square.
type pool struct {
	// pods is the number of pods, mean the mean of their means, weighted by precision, and precision the sum of the weights.
	pods, mean, precision float64
	// present is the number of pods that run, unweightedMean the mean of their means and between the sum of the squared differences
	// from it. presentUncertain is the sum of the variances over time of their means.
	present, unweightedMean, between, presentUncertain float64
	// base is the mean of the requests; it is 0 if no pod has one.
	base  float64
	class int8
}

// add adds a number of pods whose means have a variance over time.
func (p *pool) add(pods, mean, base, uncertain, pod float64) {
	weight := pods / (pod + uncertain)
	p.pods += pods
	p.base += (base - p.base) * pods / p.pods
	p.precision += weight
	p.mean += (mean - p.mean) * weight / p.precision
}

// addPresent adds a pod that runs to the variance between pods.
func (p *pool) addPresent(mean, uncertain float64) {
	p.present++
	change := mean - p.unweightedMean
	p.unweightedMean += change / p.present
	p.between += change * (mean - p.unweightedMean)
	p.presentUncertain += uncertain
}

// observePods adds the usage of pods to their histories, and drops pods that are gone.
func (l *Learner) observePods(reading *Reading, elapsed float64, decay decays) {
	for r := range l.resources {
		state := &l.resources[r]
		for c := range state.classes {
			state.classes[c].scales.decay(decay.history)
		}
	}
	l.found = l.found[:0]
	for i := range reading.Nodes {
		node := &reading.Nodes[i]
		for j := range node.Pods {
			p := &node.Pods[j]
			state := l.pod(p)
			l.found = append(l.found, state)
			if p.IsUsed {
				l.observeUse(state, p, max(elapsed, 1), &decay)
			}
		}
	}
	if len(l.pods) > len(l.found) {
		l.forgetPods()
	}
	for key, w := range l.workloads {
		kept := w.reading == l.readings
		for r := range w.past {
			w.past[r].pods *= decay.history
			w.volatility[r].decay(decay.history)
			kept = kept || w.past[r].pods > forgetBelow
		}
		if !kept {
			delete(l.workloads, key)
		}
	}
}

// forgetPods drops the pods that the reading lacks, and adds their histories to the past of their workload.
func (l *Learner) forgetPods() {
	l.pods = slices.DeleteFunc(l.pods, func(state *PodState) bool {
		if state.reading == l.readings {
			return false
		}
		for r := range state.own {
			state.workload.past[r].add(&state.own[r], state.base[r], l.counted(state))
		}
		*state = PodState{}
		return true
	})
}

// counted returns the part of a pod that the past of its workload does not have yet: a pod that ran when the history was saved
// is in the imported past, and counts again as that past decays.
func (l *Learner) counted(state *PodState) float64 {
	if state.created >= l.saved {
		return 1
	}
	return 1 - l.decaySince(l.saved)
}

// forgetBelow is the decayed number of ended pods below which a workload without pods is forgotten.
const forgetBelow = 0.05

// pod returns the state of a pod, and adds the state if the pod is new.
func (l *Learner) pod(p *PodReading) *PodState {
	state := p.State
	if state == nil {
		state = &PodState{}
	}
	if state.workload == nil {
		state.workload = l.workload(p.Workload)
		l.pods = append(l.pods, state)
	}
	w := state.workload
	if w.reading != l.readings {
		w.reading, w.request = l.readings, [Resources]float64{}
	}
	state.reading, state.created = l.readings, p.Created
	for r := range state.base {
		state.base[r] = p.Amounts[r].Request
		w.request[r] = max(w.request[r], state.base[r])
	}
	return state
}

func (l *Learner) workload(key resources.WorkloadKey) *workloadState {
	w, ok := l.workloads[key]
	if !ok {
		w = &workloadState{key: key}
		for r := range w.volatility {
			w.volatility[r] = ratio{prior: 1, weight: volatilityPairs}
		}
		l.workloads[key] = w
	}
	return w
}

// observeUse adds the usage of a pod.
func (l *Learner) observeUse(state *PodState, p *PodReading, elapsed float64, decay *decays) {
	w := state.workload
	for r := range state.own {
		own := &state.own[r]
		own.add(p.Used[r], elapsed, decay)
		class := &l.resources[r].classes[w.now[r].class]
		square := class.square(class.unit(p.Amounts[r].Request), own.mean)
		own.periods.add(p.Used[r], elapsed, func(level int, squared float64) {
			expected := class.scales.after[level] - class.scales.after[level+1]
			x := min(squared/square, extreme*expected)
			class.scales.above[level] += x
			class.scales.below[level]++
			w.volatility[r].add(x/max(expected, tiny), 1)
		})
	}
}
