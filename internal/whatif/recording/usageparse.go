package recording

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds of values.
const (
	// maxMultiple is the highest multiple of a request.
	maxMultiple = 1000
	// maxMean is the highest mean multiple of a request; more is a percentage without its sign.
	maxMean = 10
	maxCV   = 20
	// maxSteps is the maximum of hold and period: two weeks of minutes.
	maxSteps = 20160
	// minConcentration is the minimum of alpha + beta, below which a beta distribution
	// has almost only the values 0 and max.
	minConcentration = 1e-3
)

// usageDefaults of each resource.
//
// The defaults of memory are fitted to a public trace (Alibaba cluster-trace-v2026-GenAI: the
// memory utilization of 166 pods, a sample a minute for a day): the mean is 0.487, the deviation
// 0.564 means, 0.97 of the variance is between pods, pods correlate by 0.3 in the rest, and a
// change lasts for about an hour. Over [0, 1] the Kolmogorov distance of this beta distribution
// from the trace is 0.10. The trace has fractions of
// the limits; as a multiple of requests usage can exceed 1, so that max is 2 here and the distance
// 0.16. max=1 reproduces the trace.
//
// The defaults of CPU are chosen, not fitted: there is no public data on CPU usage relative to
// requests.
var usageDefaults = [usageResources]UsageShape{
	usageCPU:    {Mean: 0.4, CV: 0.6, Max: 4, Between: 0.5, Hold: 5},
	usageMemory: {Mean: 0.49, CV: 0.56, Max: 2, Between: 0.97, Together: 0.01, Hold: 60},
}

// usageNames of the resources in texts.
var usageNames = [usageResources]string{usageCPU: "cpu", usageMemory: "memory"}

// ParseUsage parses the value of --usage: one shape for both resources, or one for each,
// separated by a semicolon,
//
//	beta
//	beta:mean=0.3,cv=1,max=8
//	cpu=bursts:mean=0.3,share=0.02;memory=beta:mean=0.6
//
// The default of a missing resource is a beta. The keys are
//
//	all        mean, max (multiples of the request; max of bursts is at least the
//	           high level by default), workload, between, together (0 to 1), hold (steps)
//	all but constant   cv (standard deviation over mean)
//	bursts             share (of time at the high level)
//	diurnal            amplitude (of the mean), period (steps), phases and
//	                   workload-phases (periods)
func ParseUsage(text string) (UsageSpec, error) {
	var s UsageSpec
	for r := range s {
		s[r] = usageWithDefaults(Beta, r)
	}
	if len(text) > maxTextLength {
		return s, invalidValue("usage", text[:32]+"...", fmt.Sprintf("at most %d bytes", maxTextLength))
	}
	var seen [usageResources]bool
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		resources, shape := []int{usageCPU, usageMemory}, part
		for r, name := range usageNames {
			if rest, ok := strings.CutPrefix(part, name+"="); ok {
				resources, shape = []int{r}, rest
			}
		}
		for _, r := range resources {
			if seen[r] {
				return s, invalidValue("usage", part, "one shape for both resources, or cpu=SHAPE;memory=SHAPE")
			}
			seen[r] = true
			var err error
			if s[r], err = parseUsageShape(shape, r); err != nil {
				return s, fmt.Errorf("usage of %s: %w", usageNames[r], err)
			}
		}
	}
	return s, nil
}

func usageWithDefaults(kind string, resource int) UsageShape {
	s := usageDefaults[resource]
	s.Kind = kind
	switch kind {
	case Bursts:
		s.Share, s.Together, s.Between, s.Hold, s.CV, s.Max = 0.05, 0.8, 0, 10, 0.8, 4
	case Diurnal:
		s.Amplitude, s.Period, s.Phases = 0.5, 1440, 0.1
	case Constant:
		s.CV = 0
	case Beta:
	}
	return s
}

// parseUsageShape parses and validates one shape.
func parseUsageShape(text string, resource int) (UsageShape, error) {
	name, rest := cutName(text)
	if !slices.Contains(UsageKinds, name) {
		return UsageShape{}, invalidValue("shape", name, "one of "+strings.Join(UsageKinds, ", "))
	}
	fields, err := ParseFields(rest)
	if err != nil {
		return UsageShape{}, err
	}
	s := usageWithDefaults(name, resource)
	s.Mean = fields.number("mean", s.Mean, 0, maxMean, "a multiple of the request such as 0.7 or 70%,")
	s.Max = fields.Float("max", s.Max, 0.001, maxMultiple)
	s.Workload = fields.Float("workload", 0, 0, 1)
	s.Between = fields.Float("between", min(s.Between, 1-s.Workload), 0, 1)
	s.Together = fields.Float("together", max(min(s.Together, 1-s.Workload-s.Between), 0), 0, 1)
	s.Hold = fields.Int("hold", s.Hold, 1, maxSteps)
	if s.Kind != Constant {
		s.CV = fields.Float("cv", s.CV, 0, maxCV)
	}
	switch s.Kind {
	case Bursts:
		s.Share = fields.Float("share", s.Share, 0.0001, 0.9999)
		if _, high, half := s.levels(); !fields.Has("max") {
			s.Max = max(s.Max, min(math.Ceil(high+half), maxMultiple))
		}
	case Diurnal:
		s.Amplitude = fields.Float("amplitude", s.Amplitude, 0, 1)
		s.Period = fields.Int("period", s.Period, 2, maxSteps)
		s.Phases = fields.Float("phases", s.Phases, 0, 1)
		s.WorkloadPhases = fields.Float("workload-phases", 0, 0, 1)
	default:
	}
	if err := fields.Err(); err != nil {
		return s, err
	}
	_, err = s.quantile()
	return s, err
}

// String returns a text from which ParseUsage returns the same shape.
func (s UsageShape) String() string {
	text := fmt.Sprintf("%s:mean=%v,max=%v,between=%v,together=%v,hold=%d", s.Kind, s.Mean, s.Max, s.Between, s.Together, s.Hold)
	if s.Kind != Constant {
		text += fmt.Sprintf(",cv=%v", s.CV)
	}
	switch s.Kind {
	case Bursts:
		text += fmt.Sprintf(",share=%v", s.Share)
	case Diurnal:
		text += fmt.Sprintf(",amplitude=%v,period=%d,phases=%v", s.Amplitude, s.Period, s.Phases)
	default:
	}
	if s.Workload > 0 {
		text += fmt.Sprintf(",workload=%v", s.Workload)
	}
	if s.WorkloadPhases > 0 {
		text += fmt.Sprintf(",workload-phases=%v", s.WorkloadPhases)
	}
	return text
}

// String returns a text from which ParseUsage returns the same specification.
func (s UsageSpec) String() string {
	return fmt.Sprintf("%s=%v;%s=%v", usageNames[usageCPU], s[usageCPU], usageNames[usageMemory], s[usageMemory])
}

// CPUMean returns the mean usage of CPU, as a multiple of the request.
func (s UsageSpec) CPUMean() float64 { return s[usageCPU].Mean }
