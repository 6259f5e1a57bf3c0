// Package expression compiles and evaluates the CEL expressions of placements on managed clusters, within bounds of cost and size.
package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// maxCost is the cost limit of one expression for one cluster, in units of CEL:
// comparing two numbers costs 1. It is the limit of the API server for one expression.
const maxCost = 1_000_000

// Expression is a condition on clusters in CEL.
type Expression struct {
	// field is the path of the expression in its placement.
	field   string
	program cel.Program
}

// Outcome is the result of an expression, or of all expressions of a predicate, for a
// cluster.
type Outcome struct {
	Matches bool
	// Cost is the cost of the evaluation in units of CEL.
	Cost uint32
	// Err is set if the expression is wrong for the cluster, which does not match then:
	// an operator or function does not accept a value, or the costs exceed the limit.
	Err error
}

// errCost is the error of an expression that exceeds the cost limit for a cluster.
var errCost = fmt.Errorf("costs more than %d for one cluster: simplify it", maxCost)

// Compile compiles an expression with a boolean result. path is its path in
// the placement.
func Compile(path, text string) (*Expression, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	if err := checkText(text); err != nil {
		return nil, err
	}
	parsed, issues := env.cel.Parse(text)
	if issues.Err() != nil {
		return nil, firstOf(issues)
	}
	if err := shapeOf(ast.NavigateAST(parsed.NativeRep())).check(); err != nil {
		return nil, err
	}
	checked, issues := env.cel.Check(parsed)
	if issues.Err() != nil {
		return nil, firstOf(issues)
	}
	if t := checked.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("must be true or false, is of type %s", t)
	}
	guard := &guard{bindings: env.bindings, patterns: map[types.String]int64{}}
	program, err := env.cel.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(guard.decorate),
		cel.CostLimit(maxCost), cel.CostTracking(guard))
	if err != nil {
		return nil, err
	}
	return &Expression{path, program}, nil
}

// firstOf returns the first problem of an expression, with its line and column.
func firstOf(issues *cel.Issues) error {
	first := issues.Errors()[0]
	return errors.New(format.Shorten(fmt.Sprintf("%d:%d: %s", first.Location.Line(), first.Location.Column()+1, first.Message), maxMessage))
}

// maxMessage is the maximum length of the part of a message that comes from CEL, in
// bytes: it can contain values of clusters.
const maxMessage = 256

// EvaluateAll evaluates expressions for a cluster, which must match all of them.
func EvaluateAll(expressions []*Expression, cluster *Cluster) Outcome {
	var cost uint32
	for _, e := range expressions {
		o := e.evaluate(cluster)
		if cost += o.Cost; !o.Matches {
			return Outcome{Cost: cost, Err: o.Err}
		}
	}
	return Outcome{Cost: cost, Matches: true}
}

// evaluate evaluates the expression for a cluster.
func (e *Expression) evaluate(cluster ref.Val) Outcome {
	value, details, err := e.program.Eval(map[string]any{clusterVariable: cluster})
	out := Outcome{Cost: uint32(min(*details.ActualCost(), maxCost))} //nolint:gosec // at most maxCost
	switch {
	case err != nil:
		out.Err = e.failure(err)
	case value == types.True:
		out.Matches = true
	case value != types.False:
		out.Err = fmt.Errorf("%s: must be true or false, is of type %s", e.field, value.Type().TypeName())
	}
	return out
}

// failure returns the error of an evaluation that is to be reported. It is nil if the
// cluster does not have a value, or a valid one, that the expression uses.
func (e *Expression) failure(err error) error {
	if _, ok := errors.AsType[interpreter.EvalCancelledError](err); ok {
		return fmt.Errorf("%s: %w", e.field, errCost)
	}
	text := err.Error()
	for _, sign := range typeErrors {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%s: %s", e.field, format.Shorten(text, maxMessage))
		}
	}
	return nil
}

// typeErrors are parts of the messages of CEL for values of a type that an operator or
// function does not accept. CEL has no error types for them.
var typeErrors = []string{
	"no such overload", "expected iterable type", "unsupported index type", "unsupported key type",
	"type conversion error from 'list'", "type conversion error from 'map'", "type conversion error from 'null_type'",
	"internal error",
}
