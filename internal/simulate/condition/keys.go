package condition

import (
	"fmt"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Keys are the keys that an expression may use.
type Keys struct {
	// Profiles are the names of the profiles. The first one is the baseline, which has no differences.
	Profiles []string
	// Figures are the names of the figures.
	Figures []string
	// Intervals is set if differences have an interval.
	Intervals bool
}

// Check returns an error for a constant key that no result has, with the keys that exist. It does not
// evaluate the expression.
func (c *Condition) Check(keys Keys) error {
	if c == nil {
		return nil
	}
	var first error
	celast.PreOrderVisit(c.expression, celast.NewExprVisitor(func(e celast.Expr) {
		if path, constant := pathOf(e); constant && first == nil {
			first = keys.check(path)
		}
	}))
	return first
}

// pathOf returns the variable and the keys of an expression like a.b["c"], and false for any other.
func pathOf(e celast.Expr) ([]string, bool) {
	var operand celast.Expr
	var key string
	switch e.Kind() {
	case celast.IdentKind:
		return []string{e.AsIdent()}, true
	case celast.SelectKind:
		operand, key = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case celast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != celast.LiteralKind {
			return nil, false
		}
		literal, isText := call.Args()[1].AsLiteral().Value().(string)
		if !isText {
			return nil, false
		}
		operand, key = call.Args()[0], literal
	default:
		return nil, false
	}
	path, constant := pathOf(operand)
	return append(path, key), constant
}

// check returns an error if a path has a key that does not exist.
func (k Keys) check(path []string) error {
	levels := map[string][][]string{
		"profiles":    {k.Profiles, k.Figures},
		"differences": {k.Profiles[min(1, len(k.Profiles)):], k.Figures, k.fields()},
	}[path[0]]
	for i, key := range path[1:min(len(path), len(levels)+1)] {
		if slices.Contains(levels[i], key) {
			continue
		}
		if len(levels[i]) == 0 {
			return fmt.Errorf("%s: unknown key %q: there are none with one profile", path[0], key)
		}
		return fmt.Errorf("%s: unknown key %q: must be one of %s", strings.Join(path[:i+1], "."), key, strings.Join(levels[i], ", "))
	}
	return nil
}

// fields returns the names of the fields of a difference.
func (k Keys) fields() []string {
	if !k.Intervals {
		return []string{"mean"}
	}
	return []string{"mean", "low", "high", "clear"}
}
