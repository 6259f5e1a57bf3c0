package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"
)

// Bounds of the text and the structure of expressions. CEL determines the type of each part without a limit: the time
// grows with a high power of the depth of nested types, and exponentially with the number of map keys that are not
// constants and of macros that copy their operand.
const (
	// maxTextLength bounds the bytes of an expression.
	maxTextLength = 8 << 10
	// maxParseDepth bounds the depth of the syntax tree, maxTypeDepth of nested lists, maps and macros that iterate, and
	// maxMacros the number of such macros.
	maxParseDepth, maxTypeDepth, maxMacros = 250, 12, 32
	// maxComputedKeys bounds the map keys that are not constants, maxCopies the macros that copy their operand.
	maxComputedKeys, maxCopies = 3, 4
)

// CheckAll returns an error if a placement has too many expressions, or too long ones in total.
func CheckAll(texts []string) error {
	const maxExpressions, maxLength = 32, 16 << 10
	length := 0
	for _, text := range texts {
		length += len(text)
	}
	switch {
	case len(texts) > maxExpressions:
		return fmt.Errorf("found %d CEL expressions, at most %d are allowed", len(texts), maxExpressions)
	case length > maxLength:
		return fmt.Errorf("found CEL expressions with %d bytes in total, at most %d are allowed", length, maxLength)
	}
	return nil
}

// checkText checks the bounds of an expression that apply before it is parsed.
func checkText(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("must not be empty")
	}
	if len(text) > maxTextLength {
		return fmt.Errorf("has %d bytes, at most %d are allowed", len(text), maxTextLength)
	}
	if copies := strings.Count(text, "optMap") + strings.Count(text, "optFlatMap"); copies > maxCopies {
		return fmt.Errorf("uses optMap and optFlatMap %d times, at most %d are allowed", copies, maxCopies)
	}
	return nil
}

// shape is the structure of an expression, as far as it is bounded: the depth of nested lists, maps and macros that
// iterate, and the numbers of such macros and of map keys that are not constants.
type shape struct{ depth, loops, computedKeys int }

// shapeOf returns the structure of a parsed expression.
func shapeOf(e ast.NavigableExpr) (s shape) {
	for _, part := range e.Children() {
		p := shapeOf(part)
		s = shape{max(s.depth, p.depth), s.loops + p.loops, s.computedKeys + p.computedKeys}
	}
	switch e.Kind() {
	case ast.ListKind, ast.StructKind:
	case ast.MapKind:
		for _, item := range e.AsMap().Entries() {
			if item.AsMapEntry().Key().Kind() != ast.LiteralKind {
				s.computedKeys++
			}
		}
	case ast.ComprehensionKind:
		s.loops++
	default:
		return s
	}
	s.depth++
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
