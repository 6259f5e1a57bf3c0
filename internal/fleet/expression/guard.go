package expression

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

const (
	maxValues, maxString = 50_000, 8 << 10 // of a list or map, and of a string in bytes, that an expression constructs
	bytesPerCost         = 16              // bytes of a string whose processing costs 1
	maxPattern           = 2000            // instructions of a regular expression: x{1000} needs as many as its text repeated
)

// guard bounds the evaluation of an expression. CEL counts the cost of a call after the call, with the estimator of the
// API server. The guard adds the cost that a call can really have, and refuses a call that alone exceeds the limit before
// it is made.
type guard struct {
	library.CostEstimator
	bindings map[string]*functions.Overload
	patterns map[types.String]int64 // sizes of constant patterns
}

// decorate replaces calls, and constructors of lists and maps with variables.
func (g *guard) decorate(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch inner := node.(type) {
	case interpreter.InterpretableConstructor:
		for _, part := range inner.InitVals() {
			if _, constant := part.(interpreter.InterpretableConst); !constant {
				return constructor{inner}, nil
			}
		}
	case interpreter.InterpretableCall:
		binding := cmp.Or(g.bindings[inner.OverloadID()], g.bindings[inner.Function()])
		if len(inner.Args()) > 0 && (binding == nil || !binding.NonStrict) {
			return g.guardCall(inner, binding)
		}
	}
	return node, nil
}

// constructor is a constructor that is a call for CEL, whose cost is the size of its result.
type constructor struct {
	interpreter.InterpretableConstructor
}

func (constructor) Function() string                    { return "" }
func (constructor) OverloadID() string                  { return "" }
func (constructor) Args() []interpreter.InterpretableV2 { return nil }

// guardCall returns a call that is refused if it costs too much.
func (g *guard) guardCall(call interpreter.InterpretableCall, binding *functions.Overload) (interpreter.InterpretableV2, error) {
	args, function := append(call.Args()[:0:0], call.Args()...), call.Function()
	if function == "matches" || function == "find" || function == "findAll" {
		if constant, ok := args[1].(interpreter.InterpretableConst); ok { // CEL replaces the call: its text is checked
			pattern, _ := constant.Value().(types.String)
			size, err := patternSize(pattern)
			if err != nil {
				return nil, err
			}
			g.patterns[pattern] = size
			args[0] = interpreter.NewCall(args[0].ID(), "", "", call.Args()[:1], func(text ...ref.Val) ref.Val {
				_, _ = g.callCost(function, append(text, pattern))
				return text[0]
			})
		}
	}
	return interpreter.NewCall(call.ID(), function, call.OverloadID(), args, func(values ...ref.Val) ref.Val {
		if _, err := g.callCost(function, values); err != nil {
			return types.WrapErr(err)
		}
		return invoke(call, binding, values)
	}), nil
}

// invoke calls the implementation of a function, or the method of its first argument.
func invoke(call interpreter.InterpretableCall, b *functions.Overload, args []ref.Val) ref.Val {
	switch _, accumulator := args[0].(traits.MutableLister); {
	case call.Function() == operators.Equals:
		return types.Equal(args[0], args[1])
	case call.Function() == operators.NotEquals:
		return types.Bool(types.Equal(args[0], args[1]) != types.True)
	case call.Function() == operators.In && args[1].Type() == types.StringType:
		return types.NewErr("no such overload: in (%s, string)", args[0].Type().TypeName())
	case b == nil, b.OperandTrait != 0 && !args[0].Type().HasTrait(b.OperandTrait):
	default:
		result := apply(b, args)
		if list, ok := result.(traits.Lister); ok && call.Function() == operators.Add && !accumulator {
			return copied(list)
		}
		if result != nil {
			return result
		}
	}
	if receiver, ok := args[0].(traits.Receiver); ok {
		return receiver.Receive(call.Function(), call.OverloadID(), args[1:])
	}
	return types.NewErr("no such overload: %s", call.Function())
}

// copied returns a copy of a concatenation of lists: CEL needs a time exponential in their number for its size.
func copied(list traits.Lister) ref.Val {
	var elements []ref.Val
	for it := list.Iterator(); it.HasNext() == types.True && len(elements) <= maxValues; {
		elements = append(elements, it.Next())
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
}

// CallCost implements interpreter.ActualCostEstimator. The cost exceeds the limit if the result is too large.
func (g *guard) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	cost, _ := g.callCost(function, args)
	size, limit := weigh(result, maxValues+1), int64(maxValues)
	switch result.(type) {
	case types.String, types.Bytes:
		limit = 1 + maxString/bytesPerCost
	case traits.MutableLister: // the accumulator of a macro, to which a list was added
		size = weigh(args[1], maxValues+1)
	}
	if size > limit {
		size = maxCost
	}
	if estimate := g.CostEstimator.CallCost(function, overload, args, result); estimate != nil {
		size += int64(*estimate) //nolint:gosec // at most the square of the length of a string
	}
	return new(uint64(cost + size)) //nolint:gosec // not negative
}

var longPrecision = regexp.MustCompile("[0-9]{4}") // of a format

// callCost returns the cost of a call without its result, or an error if the function does not accept the values. It
// ends the evaluation if the call costs too much.
func (g *guard) callCost(function string, args []ref.Val) (cost int64, err error) {
	if len(args) == 0 {
		return 0, nil
	}
	first, last, length := args[0], args[len(args)-1], int64(0)
	text, _ := first.(types.String)
	for _, arg := range args {
		s, _ := arg.(types.String)
		length += int64(len(s))
	}
	cost = length / bytesPerCost
	switch function {
	case operators.Equals, operators.NotEquals:
		size := weigh(first, maxCost)
		cost += min(size, weigh(last, size))
	case operators.In, operators.OldIn:
		if list, ok := last.(traits.Lister); ok {
			cost += weigh(list, maxCost)
		}
	case "sets.contains", "sets.equivalent", "sets.intersects":
		cost += weigh(first, maxCost) * weigh(last, maxCost)
	case "includes", "indexOf", "lastIndexOf", "replace", "join":
		cost += weigh(first, maxCost) * (1 + length - int64(len(text)))
	case "format":
		if cost += weigh(last, maxCost); longPrecision.MatchString(string(text)) {
			err = fmt.Errorf("invalid format %q: a precision has more than 3 digits", format.Shorten(string(text), maxMessage))
		}
	case "matches", "find", "findAll":
		cost, err = g.matchCost(function, text, args[1])
	case "quantity", "isQuantity":
		err = resources.CheckQuantity(string(text))
	default:
		if len(args) == 2 && strings.HasPrefix(function, "get") { // reads the file of a time zone
			cost += 500
		}
	}
	if cost > maxCost {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: errCost.Error()})
	}
	return cost, err
}

// matchCost returns the cost of matching a text. findAll can read the rest of the text again for each match.
func (g *guard) matchCost(function string, text types.String, value ref.Val) (cost int64, err error) {
	pattern, _ := value.(types.String)
	size, constant := g.patterns[pattern]
	if !constant { // it is compiled
		size, err = patternSize(pattern)
	}
	length := 5 + int64(len(text))
	if function == "findAll" {
		length = max(length, length*length/bytesPerCost)
	}
	return length * size / 4, err
}

// weigh returns the number of values inside a value, at most limit. Each bytesPerCost bytes of a string count as one.
func weigh(value ref.Val, limit int64) int64 {
	n := int64(1)
	switch v := value.(type) {
	case types.String:
		n += int64(len(v)) / bytesPerCost
	case types.Bytes:
		n += int64(len(v)) / bytesPerCost
	case *types.Optional:
		if v.HasValue() {
			n = weigh(v.GetValue(), limit)
		}
	case traits.Lister:
		for it := v.Iterator(); n < limit && it.HasNext() == types.True; {
			n += weigh(it.Next(), limit-n)
		}
	case traits.Mapper:
		for it := v.Iterator(); n < limit && it.HasNext() == types.True; {
			key := it.Next()
			item, _ := v.Find(key)
			n += weigh(key, limit-n) + weigh(item, limit-n)
		}
	}
	return min(n, limit)
}

// patternSize returns the number of instructions of a regular expression, or an error if it is too large.
func patternSize(pattern types.String) (int64, error) {
	parsed, err := syntax.Parse(string(pattern), syntax.Perl)
	if invalid, ok := errors.AsType[*syntax.Error](err); ok {
		return 0, fmt.Errorf("invalid pattern %.60q: %s in %.60q (a character of its own needs two backslashes before it)",
			string(pattern), invalid.Code, invalid.Expr)
	}
	size := instructions(parsed)
	if size > maxPattern {
		err = fmt.Errorf("invalid pattern: has more than %d parts, repetitions included", maxPattern)
	}
	return size, err
}

// instructions returns the number of instructions of a parsed regular expression.
func instructions(re *syntax.Regexp) int64 {
	n := int64(1 + len(re.Rune)/2)
	for _, part := range re.Sub {
		n += instructions(part)
	}
	if re.Op == syntax.OpRepeat {
		n *= int64(max(re.Min, re.Max, 1))
	}
	return n
}

// apply calls a function, and returns nil if it has no implementation for the number of values.
func apply(b *functions.Overload, args []ref.Val) ref.Val {
	switch {
	case b == nil:
		return nil
	case b.Unary != nil && len(args) == 1:
		return b.Unary(args[0])
	case b.Binary != nil && len(args) == 2:
		return b.Binary(args[0], args[1])
	case b.Function != nil:
		return b.Function(args...)
	}
	return nil
}
