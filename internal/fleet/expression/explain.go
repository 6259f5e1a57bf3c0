package expression

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// explain returns the first problem of an expression with its place.
func (e *env) explain(text string, issues *cel.Issues) error {
	first := issues.Errors()[0]
	line, column, message := first.Location.Line(), first.Location.Column(), first.Message
	if strings.HasPrefix(message, "Syntax error") {
		message = explainSyntax(text, line, column)
	} else if match := undeclared.FindStringSubmatch(message); match != nil {
		message = e.explainName(text, match[1])
	} else if match := overload.FindStringSubmatch(message); match != nil {
		message = fmt.Sprintf("%s is not defined for %s", strings.NewReplacer("@", "", "_", "").Replace(match[1]), match[2])
		message += ": " + conversionOf(message)
	}
	return errors.New(format.Shorten(fmt.Sprintf("%d:%d: %s", line, column+1, message), maxMessage))
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '(.*?)'`)
	overload   = regexp.MustCompile(`^found no matching overload for '(.*?)' applied to '(.*)'`)
	// token matches the first token of a text, and name a name of a function or macro.
	token = regexp.MustCompile(`^\s*(\w+|\S)`)
	name  = regexp.MustCompile(`^[a-zA-Z][\w.]*$`)
)

var (
	inText = regexp.MustCompile(`\bin (?:is not defined for )?\(.*, string\)`)
	ofText = regexp.MustCompile(`kubernetes\.(Quantity|IP|CIDR|Semver)(?:, |\.\().*string\)`)
)

// conversionOf returns what to do about a value of a type that a function does not accept, as a message of CEL describes it.
func conversionOf(message string) string {
	if inText.MatchString(message) {
		return "in needs a list on the right; a text has text.contains(part)"
	} else if match := ofText.FindStringSubmatch(message); match != nil {
		return fmt.Sprintf("convert the text, as in %s(...)", strings.ToLower(match[1]))
	}
	return "convert a value, as in int(...) or string(...)"
}

// replacements are parts of other languages, with what CEL has in place of them.
var replacements = map[string]string{
	"=": "compare with ==", "is": "compare with ==", "and": "use &&", "&": "use &&", "or": "use ||", "|": "use ||", "not": "use !",
	"like": "use text.matches(pattern)", "contains": "use text.contains(part)", "length": "use size", "len": "use size",
	`"`: "the text has no closing quote", "'": "the text has no closing quote", "“": `use plain quotes, "`, "”": `use plain quotes, "`,
}

// explainSyntax returns the problem at a place of an expression.
func explainSyntax(text string, line, column int) string {
	here := []rune(strings.Split(text, "\n")[line-1])
	column = min(column, len(here))
	found := token.FindStringSubmatch(string(here[column:]))
	if found == nil {
		return "ends too early: a value or a closing bracket is missing"
	}
	words := strings.Fields(string(here[:column]))
	for _, word := range append([]string{found[1]}, words[max(0, len(words)-1):]...) { // not is a name before an unexpected one
		if hint := replacements[strings.ToLower(word)]; hint != "" {
			return fmt.Sprintf("found %q: %s", word, hint)
		}
	}
	return fmt.Sprintf("found %q: is not expected here", found[1])
}

// explainName returns the problem of a name that is not declared.
func (e *env) explainName(text, unknown string) string {
	isCall, _ := regexp.MatchString(`\b`+regexp.QuoteMeta(unknown)+`\s*\(`, text)
	if !isCall {
		return fmt.Sprintf("undeclared reference to %q: must be %s, or a text in quotes", unknown, clusterVariable)
	}
	hint := replacements[strings.ToLower(unknown)]
	if hint != "" {
		hint = ": " + hint
	}
	var known []string
	for function := range e.cel.Functions() {
		if name.MatchString(function) {
			known = append(known, function)
		}
	}
	for _, macro := range e.cel.Macros() {
		known = append(known, macro.Function())
	}
	slices.Sort(known)
	return fmt.Sprintf("unknown function %q%s", unknown, cmp.Or(hint, format.Suggestion(unknown, known)))
}

// conversions are the functions that read a text, with the texts that they accept.
var conversions = map[string]string{
	"quantity": "a quantity such as 500m, 4G or 4Gi", "semver": "a version of three numbers such as 1.31.0", "int": "a whole number",
	"timestamp": "a time such as 2026-01-31T00:00:00Z", "duration": "a duration such as 90s or 2h", "double": "a number",
	"ip": "an address such as 10.0.0.1", "cidr": "a network such as 10.0.0.0/8",
}

// checkConstants returns an error for a conversion of a constant that fails for every cluster.
func (e *env) checkConstants(part ast.NavigableExpr, references map[int64]*ast.ReferenceInfo) error {
	for _, child := range part.Children() {
		if err := e.checkConstants(child, references); err != nil {
			return err
		}
	}
	if part.Kind() != ast.CallKind || conversions[part.AsCall().FunctionName()] == "" {
		return nil
	}
	var args []ref.Val
	for _, arg := range part.Children() {
		if arg.Kind() != ast.LiteralKind {
			return nil
		}
		args = append(args, arg.AsLiteral())
	}
	text, isText := args[0].(types.String)
	function := part.AsCall().FunctionName()
	if function == "quantity" && isText {
		if _, err := resources.ParseQuantity(string(text)); err != nil {
			return fmt.Errorf("%s: %w", function, err)
		}
	}
	for _, id := range references[part.ID()].OverloadIDs {
		if isText && types.IsError(apply(e.bindings[id], args)) {
			return fmt.Errorf("%s: invalid value %q: must be %s", function, text, conversions[function])
		}
	}
	return nil
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
