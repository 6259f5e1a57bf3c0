package generate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// The names of families of shapes.
const (
	// Constant is always the mean.
	Constant = "constant"
	// Beta is a beta distribution over [0, max].
	Beta = "beta"
	// Bursts has a low and a high level, with a fraction of the time at the high level. Both are uniformly spread by a tenth of
	// their distance to each side. Bursts mostly coincide for the pods of a group.
	Bursts = "bursts"
	// Diurnal is a sine over a period, times a beta distribution.
	Diurnal = "diurnal"
)

// UsageKinds lists all kinds.
var UsageKinds = []string{Constant, Beta, Bursts, Diurnal}

// UsageShape is the distribution of the usage of one resource, as multiples of the request.
type UsageShape struct {
	// Kind is one of UsageKinds.
	Kind string `json:"kind"`
	// Mean over pods and time, and CV, the coefficient of variation.
	Mean float64 `json:"mean" range:"0,10"`
	CV   float64 `json:"cv" range:"0,20"`
	// Max is the highest multiple.
	Max float64 `json:"max" range:"0.001,1000"`
	// Workload is the fraction of the score's variance that is between groups and constant
	// over time and over the pods of a group, Between the fraction that is between pods and
	// constant over time, Together the fraction that pods of a group share at a time. Their
	// sum is at most 1.
	Workload float64 `json:"workload" range:"0,1"`
	Between  float64 `json:"between" range:"0,1"`
	Together float64 `json:"together" range:"0,1"`
	// Hold is the number of steps between two draws, at most two weeks of minutes.
	Hold int `json:"hold" range:"1,20160"`
	// Share is the fraction of time at the high level, of Bursts.
	Share float64 `json:"share" range:"0.0001,0.9999"`
	// Amplitude of the sine of Diurnal as a fraction of the mean, its Period in steps, and
	// the range of the Phases of pods in periods, 0 for the same phase. WorkloadPhases is the
	// range of a phase that the pods of a group have in common.
	Amplitude      float64 `json:"amplitude" range:"0,1"`
	Period         int     `json:"period" range:"2,20160"`
	Phases         float64 `json:"phases" range:"0,1"`
	WorkloadPhases float64 `json:"workload-phases" range:"0,1"`
}

// UsageSpec is a shape for each resource.
type UsageSpec [usageResources]UsageShape

// The table of quantiles covers scores in [-tableEnd, tableEnd], with tableDensity entries
// per unit. The probability of a score outside is 2e-9.
const (
	tableEnd     = 6
	tableDensity = 64
)

// minConcentration is the minimum of alpha + beta, below which a beta distribution
// has almost only the values 0 and max.
const minConcentration = 1e-3

// rounding is the error of the sum of three decimal fractions.
const rounding = 1e-12

// quantiles returns the table of a shape, or an error if the shape is impossible.
func (s UsageShape) quantiles() ([]float64, error) {
	quantile, err := s.quantile()
	if err != nil {
		return nil, err
	}
	table := make([]float64, 2*tableEnd*tableDensity+1)
	for i := range table {
		z := float64(i)/tableDensity - tableEnd
		below, above := math.Erfc(-z/math.Sqrt2)/2, math.Erfc(z/math.Sqrt2)/2
		table[i] = min(max(quantile(below, above), 0), s.Max)
	}
	return table, nil
}

// quantile returns the inverse of the distribution as a function of the probabilities below and above a score.
func (s UsageShape) quantile() (func(below, above float64) float64, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	switch s.Kind {
	case Beta:
		return s.beta(s.CV, s.Max)
	case Bursts:
		return s.bursts()
	case Diurnal:
		// Independent factors with means of 1 and m: 1 + cv^2 = (1 + a^2/2) (1 + noise^2).
		noise := (1+s.CV*s.CV)/(1+s.Amplitude*s.Amplitude/2) - 1
		if noise < 0 {
			return nil, s.invalidKey("cv", s.CV, "at least %.4g, the coefficient of variation of the amplitude %v alone",
				s.Amplitude/math.Sqrt2, s.Amplitude)
		}
		return s.beta(math.Sqrt(noise), s.Max/(1+s.Amplitude))
	default: // Constant
		return func(_, _ float64) float64 { return s.Mean }, nil
	}
}

// check returns an error for fields that exclude each other; ParseUsage checks the range of each.
func (s UsageShape) check() error {
	switch {
	case s.Hold < 1:
		return s.invalidKey("hold", float64(s.Hold), "at least 1")
	case s.Between+s.Together > 1:
		return s.invalidKey("between", s.Between, "at most 1 in total with together, %v", s.Together)
	case s.Workload+s.Between+s.Together > 1+rounding:
		return s.invalidKey("workload", s.Workload, "at most 1 in total with between, %v, and together, %v", s.Between, s.Together)
	case s.Mean > s.Max:
		return s.invalidKey("mean", s.Mean, "at most max, %v", s.Max)
	}
	return nil
}

func (s UsageShape) invalidKey(key string, found float64, allowed string, args ...any) error {
	return format.InvalidValue(s.Kind+": "+key, found, fmt.Sprintf(allowed, args...))
}

// beta returns the quantiles of a beta distribution on [0, upper] with the mean of the
// shape and a deviation of cv x mean, by the method of moments: with the mean m and the
// variance v on [0, 1],
//
//	alpha + beta = m (1 - m) / v - 1, alpha = m (alpha + beta)
func (s UsageShape) beta(cv, upper float64) (func(below, above float64) float64, error) {
	if s.Mean > upper {
		return nil, s.invalidKey("mean", s.Mean, "at most %.4g", upper)
	}
	mean := s.Mean / upper
	variance := cv * mean * cv * mean
	if variance == 0 || mean == 1 {
		return func(_, _ float64) float64 { return s.Mean }, nil
	}
	concentration := mean*(1-mean)/variance - 1
	if concentration < minConcentration {
		return nil, s.invalidKey("cv", s.CV, "less than %.4g, at which all values are 0 or max", math.Sqrt((1-mean)/mean))
	}
	alpha, beta := mean*concentration, (1-mean)*concentration
	return func(below, above float64) float64 {
		if above < below {
			return upper * (1 - mathext.InvRegIncBeta(beta, alpha, above))
		}
		return upper * mathext.InvRegIncBeta(alpha, beta, below)
	}, nil
}

// bursts returns the quantiles of a distribution with a fraction p of the time at the
// high level, and a gap between the levels, each uniformly spread by a tenth of the gap
// to each side:
//
//	mean     = low + p gap
//	variance = p (1-p) gap^2 + (gap/10)^2 / 3
func (s UsageShape) bursts() (func(below, above float64) float64, error) {
	p := s.Share
	low, high, half := s.levels()
	if low-half < 0 {
		return nil, s.invalidKey("cv", s.CV, "at most %.4g for a share of %v", perGap(p)/(p+0.1), p)
	}
	if high+half > s.Max {
		return nil, s.invalidKey("max", s.Max, "at least the high level, %.4g", high+half)
	}
	return func(below, above float64) float64 {
		if above < p {
			return high + half*(1-2*above/p)
		}
		return low + half*(2*min(below/(1-p), 1)-1)
	}, nil
}

// levels returns the low and the high level of bursts, and the half width of both.
func (s UsageShape) levels() (low, high, half float64) {
	gap := s.CV * s.Mean / perGap(s.Share)
	return s.Mean - s.Share*gap, s.Mean + (1-s.Share)*gap, gap / 10
}

// perGap returns the deviation of bursts per gap.
func perGap(share float64) float64 { return math.Sqrt(share*(1-share) + 0.01/3) }
