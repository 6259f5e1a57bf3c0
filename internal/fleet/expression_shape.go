package fleet

import (
	"fmt"
	"strings"

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
}

// shapeOf returns the structure of a parsed expression.
func shapeOf(e ast.Expr) (s shape) {
	inside := func(parts ...ast.Expr) {
		for _, part := range parts {
			if part == nil {
				continue
			}
			p := shapeOf(part)
			s.depth, s.computedKeys, s.loops = max(s.depth, p.depth), s.computedKeys+p.computedKeys, s.loops+p.loops
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
	case ast.MapKind:
		for _, item := range e.AsMap().Entries() {
			entry := item.AsMapEntry()
			inside(entry.Key(), entry.Value())
			if entry.Key().Kind() != ast.LiteralKind {
				s.computedKeys++
			}
		}
		s.depth++
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			inside(field.AsStructField().Value())
		}
		s.depth++
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		inside(loop.IterRange(), loop.AccuInit(), loop.LoopCondition(), loop.LoopStep(), loop.Result())
		s.depth++
		s.loops++
	default: // identifiers and literals have no parts
	}
	return s
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
