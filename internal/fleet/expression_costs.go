package fleet

import (
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// callCost returns the cost of a call, or an error if a function does not accept the
// values. limit is the cost that remains: higher ones need not be computed.
type callCost = func(args []ref.Val, limit int64) (int64, error)

// callCosts has the functions that take a time or construct a value which is not
// bounded by the lengths of their strings.
var callCosts = map[string]callCost{
	operators.Equals: equalCost, operators.NotEquals: equalCost,
	operators.In: inCost, operators.OldIn: inCost, operators.Add: addCost,
	"sets.contains": setCost, "sets.equivalent": setCost, "sets.intersects": setCost,
	"sum": listCost, "min": listCost, "max": listCost, "isSorted": listCost,
	"indexOf": listCost, "lastIndexOf": listCost, "includes": listCost,
	"join": joinCost, "replace": replaceCost, "split": splitCost, "format": formatCost, "reverse": listCost,
	"validate": validateCost, "parseJSON": parseCost, "scores": scoresCost,
	"quantity": quantityCost, "isQuantity": quantityCost,
	"getFullYear": zoneCost, "getMonth": zoneCost, "getDayOfYear": zoneCost, "getDayOfMonth": zoneCost, "getDate": zoneCost,
	"getDayOfWeek": zoneCost, "getHours": zoneCost, "getMinutes": zoneCost, "getSeconds": zoneCost, "getMilliseconds": zoneCost,
}

func equalCost(args []ref.Val, limit int64) (int64, error) {
	if !isContainer(args[0]) || !isContainer(args[1]) {
		return 0, nil
	}
	first := weigh(args[0], limit+1)
	return min(first, weigh(args[1], first)), nil
}

func inCost(args []ref.Val, limit int64) (int64, error) {
	list, ok := args[1].(traits.Lister)
	if !ok {
		return 0, nil
	}
	if isContainer(args[0]) {
		return weigh(list, limit+1), nil
	}
	return sizeOfList(list) * weigh(args[0], limit+1), nil
}

func addCost(args []ref.Val, _ int64) (int64, error) {
	switch first := args[0].(type) {
	case types.String:
		second, _ := args[1].(types.String)
		return buildCost(int64(len(first)) + int64(len(second))), nil
	case types.Bytes:
		second, _ := args[1].(types.Bytes)
		return buildCost(int64(len(first)) + int64(len(second))), nil
	case traits.MutableLister: // the accumulator of a macro, which is not copied
		second, _ := args[1].(traits.Lister)
		return sizeOfList(second), nil
	case traits.Lister:
		second, _ := args[1].(traits.Lister)
		return sizeOfList(first) + sizeOfList(second), nil
	}
	return 0, nil
}

func setCost(args []ref.Val, limit int64) (int64, error) {
	return weigh(args[0], limit+1) * weigh(args[1], limit+1), nil
}

func listCost(args []ref.Val, limit int64) (int64, error) {
	return weigh(args[0], limit+1), nil
}

func joinCost(args []ref.Val, limit int64) (int64, error) {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0, nil
	}
	length := weigh(list, limit+1) * bytesPerCost
	if len(args) > 1 {
		separator, _ := args[1].(types.String)
		length += sizeOfList(list) * int64(len(separator))
	}
	return buildCost(length), nil
}

func replaceCost(args []ref.Val, _ int64) (int64, error) {
	if len(args) < 3 {
		return 0, nil
	}
	text, _ := args[0].(types.String)
	from, _ := args[1].(types.String)
	to, _ := args[2].(types.String)
	length := replaced(text, from, to)
	return buildCost(length), nil
}

func splitCost(args []ref.Val, _ int64) (int64, error) {
	text, _ := args[0].(types.String)
	var separator types.String
	if len(args) > 1 {
		separator, _ = args[1].(types.String)
	}
	return 1 + int64(strings.Count(string(text), string(separator))), nil
}

// formatCost charges the values and the precisions of a format. text.format(list) is the
// function of strings; the formats of Kubernetes have no arguments.
func formatCost(args []ref.Val, limit int64) (int64, error) {
	text, ok := args[0].(types.String)
	if !ok || len(args) < 2 {
		return 0, nil
	}
	cost, precision := weigh(args[1], limit+1), int64(0)
	for _, c := range string(text) {
		if c < '0' || c > '9' {
			cost, precision = cost+precision/bytesPerCost, 0
			continue
		}
		precision = min(10*precision+int64(c-'0'), maxString)
	}
	return buildCost((cost + precision/bytesPerCost) * bytesPerCost), nil
}

// validateCost charges a format of Kubernetes, which is a regular expression.
func validateCost(args []ref.Val, _ int64) (int64, error) {
	text, _ := args[len(args)-1].(types.String)
	return 10 + int64(len(text)), nil
}

func parseCost(args []ref.Val, _ int64) (int64, error) {
	text, _ := args[0].(types.String)
	return 10 + int64(len(text)), nil
}

func scoresCost([]ref.Val, int64) (int64, error) { return 10, nil }

// quantityCost refuses quantities that cannot be parsed or compared in a short time.
func quantityCost(args []ref.Val, _ int64) (int64, error) {
	text, _ := args[0].(types.String)
	return 0, facts.CheckQuantity(string(text))
}

// zoneCost charges the time zone of a function of timestamps, which is read from a file.
func zoneCost(args []ref.Val, _ int64) (int64, error) {
	if len(args) < 2 {
		return 0, nil
	}
	return 500, nil
}

// sizeOfList returns the number of elements of a list, 0 for nil.
func sizeOfList(list traits.Lister) int64 {
	if list == nil {
		return 0
	}
	size, _ := list.Size().(types.Int)
	return int64(size)
}

// buildCost returns the cost of constructing a string with the given length in bytes. It
// exceeds the limit if the string is too long.
func buildCost(length int64) int64 {
	if length > maxString {
		return maxCost + 1
	}
	return length / bytesPerCost
}
