package predict

import "math"

// fit is a weighted least squares fit of
//
//	load of a node = a x requests + b x number of pods without a request
//
// to all readings, which decay. It is drawn toward a prior, robust against outliers, and not negative.
type fit struct {
	// xx, xy, yy, xz and yz are the weighted sums of products of requests (x), numbers of pods (y) and
	// loads (z).
	xx, xy, yy, xz, yz float64
	prior, precision   [classes]float64
	// mean are a and b.
	mean [classes]float64
}

// reset forgets everything but the prior.
func (f *fit) reset(a, b float64) {
	*f = fit{prior: [classes]float64{a, b}, mean: [classes]float64{a, b}}
	// Standard deviation of the prior: half of it for pods with a request, three times it without a request.
	f.precision = [classes]float64{1 / (0.5 * 0.5 * a * a), 1 / (3 * 3 * b * b)}
}

func (f *fit) decay(factor float64) {
	f.xx *= factor
	f.xy *= factor
	f.yy *= factor
	f.xz *= factor
	f.yz *= factor
}

// add adds the load of a node and its variance.
func (f *fit) add(requests, pods, load, variance float64) {
	residual := load - f.mean[requested]*requests - f.mean[unrequested]*pods
	weight := 1 / variance
	if deviations := math.Abs(residual) / math.Sqrt(variance); deviations > outlier {
		weight *= outlier / deviations
	}
	f.xx += weight * requests * requests
	f.xy += weight * requests * pods
	f.yy += weight * pods * pods
	f.xz += weight * requests * load
	f.yz += weight * pods * load
}

// solve computes the means.
func (f *fit) solve() {
	xx, yy := f.xx+f.precision[requested], f.yy+f.precision[unrequested]
	xz := f.xz + f.precision[requested]*f.prior[requested]
	yz := f.yz + f.precision[unrequested]*f.prior[unrequested]
	determinant := xx*yy - f.xy*f.xy // positive: the precisions are
	a, b := (xz*yy-yz*f.xy)/determinant, (yz*xx-xz*f.xy)/determinant
	switch {
	case a < 0:
		a, b = 0, yz/yy
	case b < 0:
		a, b = xz/xx, 0
	}
	if finite(a) && finite(b) {
		f.mean = [classes]float64{max(a, 0), max(b, 0)}
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
