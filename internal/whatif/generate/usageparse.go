package generate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// maxMultiple is the highest multiple of a request.
const maxMultiple = 1000

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
// separated by a semicolon. The default of a missing resource is a beta.
//
//	beta
//	beta:mean=0.3,cv=1,max=8
//	cpu=bursts:mean=0.3,share=0.02;memory=beta:mean=60%
func ParseUsage(text string) (UsageSpec, error) {
	s := UsageSpec{usageCPU: usageWithDefaults(Beta, usageCPU), usageMemory: usageWithDefaults(Beta, usageMemory)}
	var seen [usageResources]bool
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		for r, name := range usageNames {
			shape, isOne := strings.CutPrefix(part, name+"=")
			if !isOne && strings.HasPrefix(part, usageNames[1-r]+"=") {
				continue
			}
			if seen[r] {
				return s, format.InvalidValue("usage", part, "one shape for both resources, or cpu=SHAPE;memory=SHAPE")
			}
			seen[r] = true
			var err error
			if s[r], err = parseUsageShape(shape, r); err != nil {
				return s, fmt.Errorf("usage of %s: %w", name, err)
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

// kindsOfKeys has the kinds that have a key of a shape, if not all have it.
var kindsOfKeys = map[string][]string{
	"kind": nil, "cv": {Beta, Bursts, Diurnal}, "share": {Bursts},
	"amplitude": {Diurnal}, "period": {Diurnal}, "phases": {Diurnal}, "workload-phases": {Diurnal},
}

// parseUsageShape parses and validates one shape.
func parseUsageShape(text string, resource int) (UsageShape, error) {
	kind, rest, _ := strings.Cut(text, ":")
	kind = strings.TrimSpace(kind)
	if !slices.Contains(UsageKinds, kind) {
		return UsageShape{}, format.InvalidValue("shape", kind, "one of "+strings.Join(UsageKinds, ", "))
	}
	s := usageWithDefaults(kind, resource)
	set, err := resources.DecodePairs(rest, &s)
	if err != nil {
		return s, err
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if kinds, isOfKinds := kindsOfKeys[key]; isOfKinds && !slices.Contains(kinds, kind) {
			return s, fmt.Errorf("unknown field %q of %s", key, kind)
		}
	}
	if set["between"] == nil {
		s.Between = min(s.Between, 1-s.Workload)
	}
	if set["together"] == nil {
		s.Together = max(min(s.Together, 1-s.Workload-s.Between), 0)
	}
	if _, high, half := s.levels(); kind == Bursts && set["max"] == nil {
		s.Max = max(s.Max, min(math.Ceil(high+half), maxMultiple))
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
