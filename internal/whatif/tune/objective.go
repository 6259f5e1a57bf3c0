package tune

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// DefaultObjective is the objective without --objective.
const DefaultObjective = "overloadMinutes=1,unschedulable=100"

// maxWeight is the largest weight of a figure.
const maxWeight = 1e9

// Objective is a weighted sum of figures. Less is better.
type Objective struct {
	terms []term
}

type term struct {
	figure result.Definition
	weight float64
}

// ParseObjective parses figures with their weights, such as overloadMinutes=1,unschedulable=100,nodesUsed=2. Figures of autoscalers
// require an autoscaler.
func ParseObjective(text string, autoscaler bool) (Objective, error) {
	fields, err := spec.Parse(text)
	if err != nil {
		return Objective{}, err
	}
	var o Objective
	for _, figure := range result.Figures {
		weight := fields.Float(figure.Name, 0, 0, maxWeight)
		if fields.Has(figure.Name) && figure.Requires != result.AnyRun && !autoscaler {
			fields.Fail(figure.Name, fields.Text(figure.Name, ""), "absent without --autoscaler")
		}
		if weight > 0 {
			o.terms = append(o.terms, term{figure, weight})
		}
	}
	if err := fields.Err(); err != nil {
		return Objective{}, err
	}
	if len(o.terms) == 0 {
		return Objective{}, errors.New("no figure has a weight: at least one is required, such as overloadMinutes=1")
	}
	return o, nil
}

// String returns the objective in the syntax of ParseObjective.
func (o Objective) String() string {
	var parts []string
	for _, t := range o.terms {
		parts = append(parts, fmt.Sprintf("%s=%s", t.figure.Name, strconv.FormatFloat(t.weight, 'f', -1, 64)))
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
