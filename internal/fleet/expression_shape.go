package fleet

import (
	"fmt"
	"maps"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
)

// Bounds of the text and the structure of expressions. CEL determines the type of each
// part before it evaluates an expression, without a limit: the time grows with a high
// power of the depth of nested types, and exponentially with the number of map keys that
// are not constants and of macros that copy their operand.
const (
	// maxExpressions is the maximum number of expressions of a placement.
	maxExpressions = 32
	// maxTextLength is the maximum length of an expression in bytes, and maxTextsLength that of all
	// expressions of a placement.
	maxTextLength  = 8 << 10
	maxTextsLength = 16 << 10
	// maxParseDepth is the maximum depth of the syntax tree.
	maxParseDepth = 250
	// maxTypeDepth is the maximum depth of nested lists, maps and macros that iterate.
	maxTypeDepth = 12
	// maxMacros is the maximum number of macros that iterate in an expression.
	maxMacros = 32
	// maxComputedKeys is the maximum number of map keys that are not constants, and
	// maxCopies that of macros that copy their operand.
	maxComputedKeys = 3
	maxCopies       = 4
)

// copyingMacros are the macros whose expansion contains their operand twice.
var copyingMacros = []string{"optMap", "optFlatMap"}

// checkText checks the bounds of an expression that apply before it is parsed.
func checkText(text string) error {
	if len(text) > maxTextLength {
		return fmt.Errorf("has %d bytes, at most %d are allowed", len(text), maxTextLength)
	}
	copies := 0
	for _, name := range copyingMacros {
		copies += strings.Count(text, name)
	}
	if copies > maxCopies {
		return fmt.Errorf("uses %s %d times, at most %d are allowed", strings.Join(copyingMacros, " and "), copies, maxCopies)
	}
	return nil
}

// shape is the structure of an expression, as far as it is bounded.
type shape struct {
	depth, computedKeys int
	// loops is the number of macros that iterate.
	loops int
	// cost is the cost of evaluating each part once, as CEL counts it, without iterations; calls
	// cost 1, whatever their arguments are. Constants cost nothing: lists and maps of them are
	// constructed once.
	cost int64
	// steps has the cost of one iteration of each macro, by the node that is evaluated for it.
	steps map[int64]int64
}

// shapeOf returns the structure of a parsed expression.
func shapeOf(e ast.Expr) (s shape) {
	if e.Kind() != ast.LiteralKind {
		s.cost = 1
	}
	inside := func(parts ...ast.Expr) {
		for _, part := range parts {
			if part != nil {
				s.add(shapeOf(part))
			}
		}
	}
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			inside(call.Target())
		}
		inside(call.Args()...)
	case ast.SelectKind:
		inside(e.AsSelect().Operand())
	case ast.ListKind:
		inside(e.AsList().Elements()...)
		s.depth++
		s.construct(common.ListCreateBaseCost)
	case ast.MapKind:
		for _, item := range e.AsMap().Entries() {
			entry := item.AsMapEntry()
			inside(entry.Key(), entry.Value())
			if entry.Key().Kind() != ast.LiteralKind {
				s.computedKeys++
			}
		}
		s.depth++
		s.construct(common.MapCreateBaseCost)
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			inside(field.AsStructField().Value())
		}
		s.depth++
		s.cost += common.StructCreateBaseCost
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		inside(loop.IterRange(), loop.AccuInit(), loop.Result())
		condition, step := shapeOf(loop.LoopCondition()), shapeOf(loop.LoopStep())
		s.add(condition)
		s.add(step)
		s.addSteps(map[int64]int64{loop.LoopStep().ID(): max(1, condition.cost+step.cost)})
		s.depth++
		s.loops++
	default: // identifiers and literals have no parts
	}
	return s
}

// add adds the shape of a part.
func (s *shape) add(p shape) {
	s.depth, s.computedKeys = max(s.depth, p.depth), s.computedKeys+p.computedKeys
	s.loops, s.cost = s.loops+p.loops, s.cost+p.cost
	s.addSteps(p.steps)
}

// addSteps adds the costs of iterations.
func (s *shape) addSteps(steps map[int64]int64) {
	if s.steps == nil {
		s.steps = steps
		return
	}
	maps.Copy(s.steps, steps)
}

// construct adds the cost of constructing a list or map from its parts.
func (s *shape) construct(cost int64) {
	if s.cost == 1 { // all parts are constants
		s.cost = 0
		return
	}
	s.cost += cost
}

// check checks the bounds of the structure.
func (s shape) check() error {
	if s.depth > maxTypeDepth {
		return fmt.Errorf("nests lists, maps and macros %d levels deep, at most %d are allowed", s.depth, maxTypeDepth)
	}
	if s.loops > maxMacros {
		return fmt.Errorf("uses %d macros that iterate, at most %d are allowed", s.loops, maxMacros)
	}
	if s.computedKeys > maxComputedKeys {
		return fmt.Errorf("has %d map keys that are not constants, at most %d are allowed", s.computedKeys, maxComputedKeys)
	}
	return nil
}
