package predict

const (
	// stake is the part of the evidence that one comparison can add or take.
	stake = 0.75
	// threshold is the evidence from which the model counts as worse. If it predicts no worse than requests, it does so at most once in
	// 1,000 windows of load, on average.
	threshold = 1000
	// fewestNodes is the number of measured nodes below which there is nothing to compare.
	fewestNodes = 2
	// betInterval is the shortest time in seconds between two comparisons.
	betInterval = 900
)

// trial compares the errors of the model with the errors of predicting by requests, once per window of the load of nodes and at most once
// in 15 minutes, for an alarm. It takes hours, too long to stop using the model: windows of 15 minutes are the fastest independent
// comparisons, because the errors on the nodes of one window have common causes.
//
// The evidence against the model is multiplied by 1 + stake x d after each window, but does not leave [1, threshold]. d is the difference
// of the squared errors of both sides over their sum, in [-1, 1]. As long as the mean of d is at most 0, the evidence reaches the threshold
// no sooner than after threshold windows on average, however often one looks at it (an e-detector: a restarted betting martingale). The
// alarm ends when the evidence is 1 again.
type trial struct {
	worse    bool
	evidence float64
	// last is the second of the last comparison.
	last float64
}

// bet adds a comparison: the sums of the squared errors of the model and of requests.
func (t *trial) bet(model, requests float64) {
	if sum := model + requests; !(sum > 0) || !finite(sum) {
		return
	}
	d := (model - requests) / (model + requests)
	t.evidence = min(max(max(t.evidence, 1)*(1+stake*d), 1), threshold)
	t.worse = t.evidence == threshold || t.worse && t.evidence > 1
}

// compare adds the comparison of a reading, once per window of the load of nodes and at most once per betInterval.
func (t *trial) compare(reading *Reading, model, requests float64) {
	if reading.Second >= t.last+max(reading.Window, betInterval) {
		t.last = reading.Second
		t.bet(model, requests)
	}
}

// compareErrors returns the sums of the squared errors of both predictions of the load of the measured nodes in relation to each other,
// which is what decides between nodes: each prediction is scaled to the sum of the measured loads. The model predicts by workloads, as
// it does for a new pod: not by the histories of the pods that run, nor by the measured load. Errors below a hundredth of the mean
// load count as equal.
func compareErrors(observed []observation, r int) (model, requests float64) {
	unit := func(o *observation) float64 { return o.requests + o.pods*priors[r][unrequested].Mean }
	measured, byModel, byRequest := 0.0, 0.0, 0.0
	for i := range observed {
		measured += observed[i].measured.Mean
		byModel += observed[i].byWorkload
		byRequest += unit(&observed[i])
	}
	if len(observed) < fewestNodes || measured <= 0 || byModel <= 0 || byRequest <= 0 {
		return 0, 0
	}
	n := float64(len(observed))
	for i := range observed {
		o := &observed[i]
		share := o.measured.Mean / measured
		m, q := n*(o.byWorkload/byModel-share), n*(unit(o)/byRequest-share)
		model, requests = model+m*m, requests+q*q
	}
	return model + 1e-4*n, requests + 1e-4*n
}
