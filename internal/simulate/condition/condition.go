// Package condition evaluates an expression over the result of a what-if, so that a
// pipeline can reject a change.
package condition

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// Condition is a CEL expression. It is evaluated for one scenario, with the variables
//
//	profiles     figures by profile and name: profiles["limits"].overloadMinutes
//	differences  from the first profile, each with mean and, if there is an interval,
//	             low, high and clear: differences["limits"].overloadMinutes.high
//	limits       limits of the scenario, a text
//	usage        usage of the scenario, a text
//	result       the whole document
//
// Figures are doubles: compare them with 0.0, not with 0.
type Condition struct {
	program    cel.Program
	expression celast.Expr
}

// Bounds of the length of an expression in bytes, and of its evaluation cost.
const (
	maxLength = 4096
	maxCost   = 10_000_000
)

// New compiles an expression. It returns nil for an empty one.
func New(expression string) (*Condition, error) {
	if expression == "" {
		return nil, nil
	}
	if len(expression) > maxLength {
		return nil, fmt.Errorf("the expression has %d bytes: must have at most %d", len(expression), maxLength)
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
		return nil, fmt.Errorf("%q has the type %s: must be bool", expression, ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, err
	}
	return &Condition{program, ast.NativeRep().Expr()}, nil
}

// Evaluate reports whether the expression is true for a scenario of a result.
func (c *Condition) Evaluate(r *result.Result, scenario int) (bool, error) {
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
		means, differencesOfProfile := map[string]float64{}, map[string]any{}
		for name, figure := range p.Figures {
			means[name] = figure.Mean
			if figure.Difference != nil {
				differencesOfProfile[name] = differenceFields(figure.Difference)
			}
		}
		profiles[p.Name] = means
		if i > 0 {
			differences[p.Name] = differencesOfProfile
		}
	}
	value, _, err := c.program.Eval(map[string]any{
		"profiles": profiles, "differences": differences, "limits": s.Limits, "usage": s.Usage, "result": document,
	})
	if err != nil {
		return false, err
	}
	isTrue, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression has the type %s: must be bool", value.Type().TypeName())
	}
	return isTrue, nil
}

// differenceFields returns the fields of a difference in expressions.
func differenceFields(d *result.Difference) map[string]any {
	fields := map[string]any{"mean": d.Mean}
	if d.Interval != nil {
		fields["low"], fields["high"], fields["clear"] = d.Interval.Low, d.Interval.High, d.Interval.ExcludesZero
	}
	return fields
}
