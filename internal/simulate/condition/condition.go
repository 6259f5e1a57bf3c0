// Package condition judges the result of a what-if by an expression, so that a
// pipeline can stop a change that would do harm.
package condition

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// Condition is an expression in CEL. It is asked of one scenario, over
//
//	profiles     figures by profile and name: profiles["limits"].overloadMinutes
//	differences  to the first profile, each with mean and, if there is an interval,
//	             low, high and clear: differences["limits"].overloadMinutes.high
//	limits       the limits of the scenario, usage its use: texts
//	result       the whole document
//
// Figures are numbers with a point: compare them with 0.0, not with 0.
type Condition struct {
	program cel.Program
}

// maxLength bounds an expression, maxCost how much work it may make.
const (
	maxLength = 4096
	maxCost   = 10_000_000
)

// New compiles an expression, nil if it is empty.
func New(expression string) (*Condition, error) {
	if expression == "" {
		return nil, nil
	}
	if len(expression) > maxLength {
		return nil, fmt.Errorf("the expression has %d bytes, allowed: %d", len(expression), maxLength)
	}
	figures := cel.MapType(cel.StringType, cel.MapType(cel.StringType, cel.DoubleType))
	env, err := cel.NewEnv(
		cel.Variable("profiles", figures), cel.Variable("differences", cel.DynType),
		cel.Variable("limits", cel.StringType), cel.Variable("usage", cel.StringType), cel.Variable("result", cel.DynType),
		cel.CrossTypeNumericComparisons(true),
	)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(issues.Err().Error(), "\n", " "))
	}
	if ast.OutputType() != cel.BoolType && ast.OutputType() != cel.DynType {
		return nil, fmt.Errorf("%q is a %s, want true or false", expression, ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, err
	}
	return &Condition{program}, nil
}

// Holds reports whether the expression is true of a scenario of a result.
func (c *Condition) Holds(r *result.Result, scenario int) (bool, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		return false, err
	}
	s := &r.Scenarios[scenario]
	profiles, differences := map[string]map[string]float64{}, map[string]any{}
	for i := range s.Profiles {
		p := &s.Profiles[i]
		profiles[p.Name] = map[string]float64{}
		of := map[string]any{}
		for name, figure := range p.Figures {
			profiles[p.Name][name] = figure.Mean
			if figure.Difference != nil {
				of[name] = differenceOf(figure.Difference)
			}
		}
		if i > 0 {
			differences[p.Name] = of
		}
	}
	value, _, err := c.program.Eval(map[string]any{
		"profiles": profiles, "differences": differences, "limits": s.Limits, "usage": s.Usage, "result": document,
	})
	if err != nil {
		return false, err
	}
	holds, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression is a %s, want true or false", value.Type().TypeName())
	}
	return holds, nil
}

func differenceOf(d *result.Difference) map[string]any {
	fields := map[string]any{"mean": d.Mean}
	if d.Interval != nil {
		fields["low"], fields["high"], fields["clear"] = d.Interval.Low, d.Interval.High, d.Interval.ExcludesZero
	}
	return fields
}
