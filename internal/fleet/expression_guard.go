package fleet

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// budgetName is the name of the budget in the variables of an evaluation. No expression
// can refer to it.
const budgetName = "\x00budget"

// activation provides the cluster and the budget of one evaluation.
type activation struct {
	cluster ref.Val
	budget  budget
}

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case budgetName:
		return &a.budget, true
	case clusterVariable:
		return a.cluster, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (*activation) Parent() interpreter.Activation { return nil }

// budget is the cost that remains for one evaluation. CEL counts the cost of a call
// after it, from the sizes of its arguments, and charges 1 for most functions. The
// budget is charged before the call with the time and memory that it can take.
type budget struct {
	left int64
	// charges is the number of charges, and deadline the end of maxTime, zero before the first
	// charges.
	charges  int
	deadline time.Time
}

// chargesPerCheck is the number of charges after which the time is checked.
const chargesPerCheck = 1024

// used returns the cost that was charged, at most maxCost.
func (b *budget) used() uint32 { return uint32(maxCost - max(b.left, 0)) } //nolint:gosec // from 0 to maxCost

// charge reduces the budget. It ends the evaluation if too little remains.
func (b *budget) charge(cost int64) {
	if b.left -= cost; b.left < 0 || cost < 0 {
		b.left = 0
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: errCost.Error()})
	}
	if b.charges++; b.charges%chargesPerCheck == 0 {
		b.checkTime(time.Now())
	}
}

// checkTime ends the evaluation if it takes too long.
func (b *budget) checkTime(now time.Time) {
	if b.deadline.IsZero() {
		b.deadline = now.Add(maxTime)
	}
	if now.After(b.deadline) {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: errTime.Error()})
	}
}

// budgetOf returns the budget of an evaluation. While constants are evaluated during
// compilation, it is a budget for each call.
func budgetOf(frame *interpreter.ExecutionFrame) *budget {
	if frame != nil && frame.Activation != nil {
		if value, ok := frame.ResolveName(budgetName); ok {
			if b, ok := value.(*budget); ok {
				return b
			}
		}
	}
	return &budget{left: maxCost}
}

// guard bounds the evaluation of an expression.
type guard struct {
	// bindings has the implementations of functions, see env.
	bindings map[string]*functions.Overload
	// steps has the costs of iterations by node, and guarded is the number of those that are
	// charged.
	steps   map[int64]int64
	guarded int
}

// decorate replaces calls, constructors of lists and maps, and iterations by those that
// charge the budget first.
func (g *guard) decorate(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	var err error
	switch inner := node.(type) {
	case interpreter.InterpretableConstructor:
		node = guardConstructor(inner)
	case interpreter.InterpretableCall:
		node, err = g.guardCall(inner)
	}
	if cost, ok := g.steps[node.ID()]; ok && err == nil {
		g.guarded++
		node = &guardedStep{node, cost}
	}
	return node, err
}

// guardedStep is the part of a macro that is evaluated once for each element.
type guardedStep struct {
	interpreter.InterpretableV2
	cost int64
}

// Exec implements interpreter.InterpretableV2.
func (g *guardedStep) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	budgetOf(frame).charge(g.cost)
	return g.InterpretableV2.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (g *guardedStep) Eval(vars interpreter.Activation) ref.Val {
	return g.Exec(interpreter.AsFrame(vars))
}

// guardedConstructor constructs a list or map.
type guardedConstructor struct {
	interpreter.InterpretableConstructor
}

// guardConstructor returns the constructor unless its elements are constants.
func guardConstructor(inner interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	for _, element := range inner.InitVals() {
		if _, constant := element.(interpreter.InterpretableConst); !constant {
			return &guardedConstructor{inner}
		}
	}
	return inner
}

// Exec implements interpreter.InterpretableV2. It charges the number of values inside:
// otherwise an expression with n macros has a value with 2^n elements.
func (g *guardedConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := g.InterpretableConstructor.Exec(frame)
	if types.IsUnknownOrError(value) {
		return value
	}
	cost := weigh(value, maxValues+1)
	if cost > maxValues {
		cost = maxCost + 1
	}
	budgetOf(frame).charge(cost)
	return value
}

// Eval implements interpreter.Interpretable.
func (g *guardedConstructor) Eval(vars interpreter.Activation) ref.Val {
	return g.Exec(interpreter.AsFrame(vars))
}

const (
	// maxValues is the maximum number of values in a list or map that an expression
	// constructs.
	maxValues = 50_000
	// maxString is the maximum length of a string that an expression constructs, in bytes.
	maxString = 1 << 20
	// bytesPerCost is the number of bytes of a string whose processing costs 1.
	bytesPerCost = 16
)

// weigh returns the number of values inside a value, at most limit. Each bytesPerCost
// bytes of a string count as one.
func weigh(value ref.Val, limit int64) int64 {
	switch v := value.(type) {
	case types.String:
		return min(1+int64(len(v))/bytesPerCost, limit)
	case types.Bytes:
		return min(1+int64(len(v))/bytesPerCost, limit)
	case *types.Optional:
		if v.HasValue() {
			return weigh(v.GetValue(), limit)
		}
	case traits.Lister:
		n := int64(1)
		for it := v.Iterator(); n < limit && it.HasNext() == types.True; {
			n += weigh(it.Next(), limit-n)
		}
		return n
	case traits.Mapper:
		n := int64(1)
		for it := v.Iterator(); n < limit && it.HasNext() == types.True; {
			key := it.Next()
			n += weigh(key, limit-n)
			if item, ok := v.Find(key); ok && n < limit {
				n += weigh(item, limit-n)
			}
		}
		return n
	}
	return min(1, limit)
}

// isContainer reports whether a value contains other values.
func isContainer(value ref.Val) bool {
	switch v := value.(type) {
	case *types.Optional:
		return v.HasValue() && isContainer(v.GetValue())
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// guardedCall is a call that charges the budget before it is made.
type guardedCall struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	impl func(args []ref.Val) ref.Val
	// cost returns the cost of a call in addition to the length of its strings, or an
	// error. Others have only that of their strings.
	cost func(args []ref.Val, limit int64) (int64, error)
}

// guardCall returns the guarded call of a function that is evaluated after its arguments.
func (g *guard) guardCall(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	binding := g.bindings[call.OverloadID()]
	if binding == nil {
		binding = g.bindings[call.Function()]
	}
	if len(call.Args()) == 0 || binding != nil && binding.NonStrict {
		return call, nil
	}
	out := &guardedCall{InterpretableCall: call, args: call.Args(), cost: callCosts[call.Function()]}
	switch call.Function() {
	case operators.Equals:
		out.impl = func(args []ref.Val) ref.Val { return types.Equal(args[0], args[1]) }
	case operators.NotEquals:
		out.impl = func(args []ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }
	case operators.Add:
		out.impl = func(args []ref.Val) ref.Val {
			if sum := concatenated(args[0], args[1]); sum != nil {
				return sum
			}
			return dispatch(call, binding, args)
		}
	case "matches", "find", "findAll":
		return out, out.guardRegex(call, binding)
	default:
		out.impl = func(args []ref.Val) ref.Val { return dispatch(call, binding, args) }
	}
	return out, nil
}

// dispatch calls the implementation of a function, or the method of its first argument.
func dispatch(call interpreter.InterpretableCall, binding *functions.Overload, args []ref.Val) ref.Val {
	if binding != nil && (binding.OperandTrait == 0 || args[0].Type().HasTrait(binding.OperandTrait)) {
		switch {
		case binding.Unary != nil && len(args) == 1:
			return binding.Unary(args[0])
		case binding.Binary != nil && len(args) == 2:
			return binding.Binary(args[0], args[1])
		case binding.Function != nil:
			return binding.Function(args...)
		}
	}
	if receiver, ok := args[0].(traits.Receiver); ok {
		return receiver.Receive(call.Function(), call.OverloadID(), args[1:])
	}
	return types.NewErr("no such overload: %s", call.Function())
}

// concatenated returns the concatenation of two lists, nil for other values and for the
// accumulators of macros. That of CEL refers to both lists, and takes a time
// exponential in the number of concatenations to determine its size.
func concatenated(a, b ref.Val) ref.Val {
	if _, accumulator := a.(traits.MutableLister); accumulator {
		return nil
	}
	first, ok := a.(traits.Lister)
	if !ok {
		return nil
	}
	second, ok := b.(traits.Lister)
	if !ok {
		return nil
	}
	var elements []ref.Val
	for _, list := range []traits.Lister{first, second} {
		for it := list.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, it.Next())
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
}

// Args implements interpreter.InterpretableCall.
func (g *guardedCall) Args() []interpreter.InterpretableV2 { return g.args }

// Exec implements interpreter.InterpretableV2.
func (g *guardedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var few [4]ref.Val
	args := few[:0]
	for _, arg := range g.args {
		value := arg.Exec(frame)
		if types.IsUnknownOrError(value) {
			return value
		}
		args = append(args, value)
	}
	b := budgetOf(frame)
	b.charge(stringCost(args))
	if g.cost != nil {
		cost, err := g.cost(args, b.left)
		if err != nil {
			return types.NewErrWithNodeID(g.ID(), "%v", err)
		}
		b.charge(cost)
	}
	return types.LabelErrNode(g.ID(), g.impl(args))
}

// Eval implements interpreter.Interpretable.
func (g *guardedCall) Eval(vars interpreter.Activation) ref.Val {
	return g.Exec(interpreter.AsFrame(vars))
}

// stringCost returns the cost of the lengths of strings.
func stringCost(args []ref.Val) (cost int64) {
	for _, arg := range args {
		switch v := arg.(type) {
		case types.String:
			cost += int64(len(v)) / bytesPerCost
		case types.Bytes:
			cost += int64(len(v)) / bytesPerCost
		}
	}
	return cost
}

// maxPattern is the maximum number of instructions of a regular expression:
// a repetition such as x{1000} needs as many as its text repeated.
const maxPattern = 2000

// variablePattern hides that a pattern is a constant: CEL would replace the guarded call.
type variablePattern struct{ interpreter.InterpretableV2 }

// guardRegex sets the implementation of a function of regular expressions, and its cost: the
// length of the text times the number of instructions of the pattern.
func (g *guardedCall) guardRegex(call interpreter.InterpretableCall, binding *functions.Overload) error {
	g.impl = func(args []ref.Val) ref.Val { return dispatch(call, binding, args) }
	g.cost = func(args []ref.Val, _ int64) (int64, error) {
		size, err := patternSize(args[1])
		return regexCost(args[0], size) + size, err
	}
	if len(g.args) < 2 {
		return nil
	}
	constant, ok := g.args[1].(interpreter.InterpretableConst)
	if !ok {
		return nil
	}
	size, err := patternSize(constant.Value())
	if err != nil {
		return err
	}
	g.args = append([]interpreter.InterpretableV2{}, g.args...)
	g.args[1] = variablePattern{constant}
	extra := size // the functions other than matches compile the pattern
	if call.Function() == "matches" {
		pattern, err := regexp.Compile(string(constant.Value().(types.String)))
		if err != nil {
			return err
		}
		extra = 0
		g.impl = func(args []ref.Val) ref.Val {
			text, ok := args[0].(types.String)
			if !ok {
				return types.NewErr("no such overload: matches")
			}
			return types.Bool(pattern.MatchString(string(text)))
		}
	}
	g.cost = func(args []ref.Val, _ int64) (int64, error) { return regexCost(args[0], size) + extra, nil }
	return nil
}

// regexCost returns the cost of matching a text with a pattern of the given size.
func regexCost(text ref.Val, size int64) int64 {
	s, _ := text.(types.String)
	return (1 + int64(len(s))) * size / 4
}

// patternSize returns the number of instructions of a regular expression.
func patternSize(pattern ref.Val) (int64, error) {
	text, ok := pattern.(types.String)
	if !ok {
		return 0, fmt.Errorf("no such overload: a pattern is of type %s", pattern.Type().TypeName())
	}
	parsed, err := syntax.Parse(string(text), syntax.Perl)
	if err != nil {
		return 0, err
	}
	size := instructions(parsed)
	if size > maxPattern {
		return 0, fmt.Errorf("invalid pattern: has more than %d parts, repetitions included", maxPattern)
	}
	return size, nil
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

// replaced returns the length of the result of text.replace(old, new) without computing it.
func replaced(text, from, to types.String) int64 {
	return int64(len(text)) + int64(strings.Count(string(text), string(from)))*max(0, int64(len(to)-len(from)))
}
