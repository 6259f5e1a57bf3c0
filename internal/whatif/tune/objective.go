package tune

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// DefaultObjective is the objective without --objective.
const DefaultObjective = "overload=1,unschedulable=100"

// maxWeight is the largest weight of a figure.
const maxWeight = 1e9

// shortNames are shorter names of figures in objectives.
var shortNames = []struct{ short, figure string }{
	{"overload", "overloadMinutes"},
	{"throttled", "throttledCoreSeconds"},
	{"overruns", "memoryOverruns"},
	{"pending", "pendingSecondsMean"},
	{"nodes", "nodesUsed"},
}

// Objective is a weighted sum of figures. Less is better.
type Objective struct {
	terms []term
}

type term struct {
	name   string
	figure result.Definition
	weight float64
}

// ParseObjective parses figures with their weights, such as overload=1,unschedulable=100,nodes=2. A figure has its name in
// documents or its short name. Figures of autoscalers require an autoscaler.
func ParseObjective(text string, autoscaler bool) (Objective, error) {
	fields, err := spec.Parse(text)
	if err != nil {
		return Objective{}, err
	}
	var o Objective
	add := func(name string, figure result.Definition) {
		if !fields.Has(name) {
			_ = fields.Float(name, 0, 0, maxWeight) // names the key in errors
			return
		}
		if slices.ContainsFunc(o.terms, func(t term) bool { return t.figure.Name == figure.Name }) {
			fields.Fail(name, fields.Text(name, ""), "set once: it is another name of a figure that is already set")
		}
		if figure.Requires != result.AnyRun && !autoscaler {
			fields.Fail(name, fields.Text(name, ""), "absent without --autoscaler")
		}
		if weight := fields.Float(name, 0, 0, maxWeight); weight > 0 {
			o.terms = append(o.terms, term{name, figure, weight})
		}
	}
	for _, s := range shortNames {
		figure, _ := result.FigureByName(s.figure)
		add(s.short, figure)
	}
	for _, figure := range result.Figures {
		add(figure.Name, figure)
	}
	if err := fields.Err(); err != nil {
		return Objective{}, err
	}
	if len(o.terms) == 0 {
		return Objective{}, errors.New("no figure has a weight: at least one is required, such as overload=1")
	}
	return o, nil
}

// String returns the objective in the syntax of ParseObjective.
func (o Objective) String() string {
	var parts []string
	for _, t := range o.terms {
		parts = append(parts, fmt.Sprintf("%s=%s", t.name, strconv.FormatFloat(t.weight, 'f', -1, 64)))
	}
	return strings.Join(parts, ",")
}

// Value returns the objective of a run, which must have the figures.
func (o Objective) Value(run *result.Run) float64 {
	sum := 0.0
	for _, t := range o.terms {
		sum += t.weight * t.figure.Value(run)
	}
	return sum
}

// ObjectiveNames returns the names that an objective may have: short names first.
func ObjectiveNames() []string {
	var names []string
	for _, s := range shortNames {
		names = append(names, s.short)
	}
	for _, figure := range result.Figures {
		if !slices.ContainsFunc(shortNames, func(s struct{ short, figure string }) bool { return s.figure == figure.Name }) {
			names = append(names, figure.Name)
		}
	}
	return names
}
