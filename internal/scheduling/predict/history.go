package predict

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// history is the usage of one pod, as multiples of its base: decaying sums of a weight, the mean, and
// the squared differences from the mean.
type history struct {
	weight, mean, squares float64
	// last is the newest usage.
	last float64
	// block is the sum of the readings of the present block, blocks are the means of the previous ones.
	block, inBlock float64
	blocks         struct{ count, mean, squares float64 }
	class          int8
}

// blockSize is the number of readings in a block. The variance of the means of blocks shows for how long
// the usage of a pod remains the same.
const blockSize = 10

// add adds a usage after the previous ones have decayed.
func (h *history) add(x, decay float64, class int) {
	if int(h.class) != class {
		*h = history{class: int8(class)} // the pod was resized
	}
	h.weight = h.weight*decay + 1
	h.squares *= decay
	change := x - h.mean
	h.mean += change / h.weight
	h.squares += change * (x - h.mean)
	h.last = x
	h.block += x
	h.inBlock++
	if h.inBlock == blockSize {
		b, mean := &h.blocks, h.block/blockSize
		b.count = b.count*decay + 1
		b.squares *= decay
		change := mean - b.mean
		b.mean += change / b.count
		b.squares += change * (mean - b.mean)
		h.block, h.inBlock = 0, 0
	}
}

// isLong reports whether the history is long enough for variances over time.
func (h *history) isLong() bool { return h.weight >= 2*blockSize }

// PodState is the state of a learner for one pod. The zero value is a new pod.
type PodState struct {
	workload *workloadState
	node     *nodeState
	// reading is the number of the newest reading that has the pod.
	reading uint64
	own     [Resources]history
}

// workloadState is the state of a learner for one workload.
type workloadState struct {
	key     resources.WorkloadKey
	reading uint64
	past    [Resources]past
	now     [Resources]pool
	ratio   [Resources]Ratio
	// sum and squares add up deviations, and count counts them, over the pods of the node or reading that is
	// being processed.
	sum, squares float64
	count        int
}

// past is the usage of the pods of a workload that have ended.
type past struct {
	// pods is their decayed number, readings the decayed sum of their weights.
	pods, readings float64
	// mean is the mean of the means of the pods.
	mean  float64
	class int8
}

// add adds the history of a pod that ended. As in a pool, pods with a request replace pods without one.
func (p *past) add(h *history) {
	switch {
	case h.weight < minimumForPast, p.pods > 0 && h.class > p.class:
		return
	case h.class < p.class, p.pods == 0:
		*p = past{class: h.class}
	}
	p.pods++
	p.mean += (h.mean - p.mean) / p.pods
	p.readings += h.weight
}

// minimumForPast is the weight of a history below which it is dropped when the pod ends.
const minimumForPast = 1

func (p *past) decay(factor float64) {
	p.pods *= factor
	p.readings *= factor
}

// pool is the usage of the pods of a workload, present and past, in one reading.
type pool struct {
	// pods is the number of pods, mean the mean of their means.
	pods, mean float64
	// long, longReadings and squares are the number of pods with a long history, the sum of their
	// weights, and the sum of the squared differences of the readings from the mean of their pod.
	long, longReadings, squares float64
	// blocks is the number of complete blocks less one per pod, blockSquares the sum of the squared
	// differences of the means of blocks from their mean.
	blocks, blockSquares float64
	// present is the number of pods that have not ended.
	present float64
	// between is the sum of the squared differences of the pods' means.
	between float64
	// inverse is the sum of the inverse weights of the pods.
	inverse float64
	class   int8
}

// add adds the history of a pod. If only some pods of a workload have a request, the pods without one are ignored.
func (p *pool) add(h *history) {
	switch {
	case h.weight == 0, p.pods > 0 && h.class > p.class:
		return
	case h.class < p.class:
		*p = pool{}
	}
	p.class = h.class
	p.pods++
	p.present++
	change := h.mean - p.mean
	p.mean += change / p.pods
	p.between += change * (h.mean - p.mean)
	p.inverse += 1 / h.weight
	if h.isLong() {
		p.long++
		p.longReadings += h.weight
		p.squares += h.squares
		if h.blocks.count > 1 {
			p.blocks += h.blocks.count - 1
			p.blockSquares += h.blocks.squares
		}
	}
}

// addPast adds the pods that ended.
func (p *pool) addPast(past *past) {
	if past.pods < 0.01 || (p.pods > 0 && past.class != p.class) {
		return
	}
	p.class = past.class
	total := p.pods + past.pods
	p.mean += (past.mean - p.mean) * past.pods / total
	p.inverse += past.pods * past.pods / past.readings
	p.pods = total
}

// Ratio is the expected use of the pods of a workload, as a multiple of their base.
type Ratio struct {
	// Mean is the mean of the workload, Unknown the variance of its estimate.
	Mean, Unknown float64
	// Pod is the variance between the pods of the workload, Time the variance of a pod over time.
	Pod, Time float64
	// Pods is the number of pods behind the ratio; 0 for the ratio of the class.
	Pods  float64
	class int8
}

// observePods adds the usage of pods to their histories, and drops pods that are gone.
func (l *Learner) observePods(reading *Reading, decay float64) {
	for r := range l.resources {
		l.resources[r].together.decay(decay)
	}
	l.found = l.found[:0]
	for i := range reading.Nodes {
		node := &reading.Nodes[i]
		for j := range node.Pods {
			p := &node.Pods[j]
			state := l.pod(p)
			l.found = append(l.found, state)
			if p.IsUsed {
				l.observeUse(state, p, decay)
			}
		}
	}
	l.settleTogether()
	if len(l.pods) > len(l.found) {
		l.forgetPods()
	}
	for key, w := range l.workloads {
		kept := w.reading == l.readings
		for r := range w.past {
			w.past[r].decay(decay)
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
			state.workload.past[r].add(&state.own[r])
		}
		*state = PodState{}
		return true
	})
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
	state.reading, state.workload.reading = l.readings, l.readings
	return state
}

func (l *Learner) workload(key resources.WorkloadKey) *workloadState {
	w, ok := l.workloads[key]
	if !ok {
		w = &workloadState{key: key}
		l.workloads[key] = w
	}
	return w
}

// observeUse adds the usage of a pod.
func (l *Learner) observeUse(state *PodState, p *PodReading, decay float64) {
	for r := range state.own {
		base, class := p.Amounts[r].base()
		x := p.Used[r] / base
		state.own[r].add(x, decay, class)
	}
	if w := state.workload; state.own[CPU].weight >= blockSize {
		l.addCorrelated(w, state.own[CPU].last-state.own[CPU].mean)
	}
}

// settleTogether updates the correlation over time of the pods of a workload. For n differences d from
// the means of the pods, the expected value of (sum d)^2 - sum d^2 is correlation x (n-1) x sum d^2.
func (l *Learner) settleTogether() {
	q := &l.resources[CPU].together
	for _, w := range l.touched {
		if w.count > 1 && w.squares > 0 {
			scale := float64(w.count-1) * w.squares
			q.add((w.sum*w.sum-w.squares)/scale, 1)
		}
		w.sum, w.squares, w.count = 0, 0, 0
	}
	l.touched = l.touched[:0]
}
