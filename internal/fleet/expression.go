package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/library"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// maxCost bounds the work that one expression may be for one cluster, in CEL's
// units: comparing two numbers is 1. It is a tenth of what the API server allows
// a rule.
const maxCost = 1_000_000

// expression is a condition on clusters, written in CEL.
type expression struct {
	text    string
	program cel.Program
}

// errCost is that an expression is too much work.
var errCost = fmt.Errorf("costs more than %d for one cluster: make it simpler", maxCost)

// environment is what expressions are compiled in: the variable managedCluster,
// the functions of Kubernetes for versions, quantities, lists, addresses and
// regular expressions, and those of placements.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(
		cel.Variable("managedCluster", object),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(),
		library.Quantity(), library.SemverLib(library.SemverVersion(1)), library.Lists(), library.Regex(), library.URLs(), library.IP(), library.CIDR(),
		cel.Function("scores", cel.MemberOverload("cluster_scores_string", []*cel.Type{object, cel.StringType}, cel.ListType(object),
			cel.BinaryBinding(scoresOf))),
		cel.Function("parseJSON", cel.MemberOverload("string_parse_json", []*cel.Type{cel.StringType}, object,
			cel.UnaryBinding(parseJSON))),
	)
})

// compileExpression reads an expression, which must be true or false.
func compileExpression(text string) (*expression, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		// The lines after the first draw the place.
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(strings.TrimPrefix(first, "ERROR: <input>:"))
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("is a %s, must be true or false", t)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	return &expression{text, program}, nil
}

// holds reports whether the expression is true of a cluster. What is not there,
// such as a label, makes it false; only too much work is an error.
func (e *expression) holds(variables map[string]any) (bool, error) {
	out, _, err := e.program.Eval(variables)
	if err != nil {
		if cost, ok := errors.AsType[*types.Err](err); ok && isCost(cost) || isCost(err) {
			return false, fmt.Errorf("%q %w", e.text, errCost)
		}
		return false, nil // not true of this cluster: it lacks what is asked for
	}
	return out == types.True, nil
}

// isCost reports whether an evaluation was ended for its cost, which CEL tells in
// words only.
func isCost(err error) bool {
	const words = "actual cost limit exceeded"
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); len(text) >= len(words) && text[len(text)-len(words):] == words {
			return true
		}
	}
	return false
}

// scoresKey is where a cluster's variables carry its add-ons' scores.
const scoresKey = "\x00scores"

// variablesOf returns what expressions see of a cluster.
func variablesOf(c *clusterv1.ManagedCluster, scores map[string]*addOnScore) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return nil, err
	}
	lists := make(map[string]any, len(scores))
	for name, score := range scores {
		list := []map[string]any{}
		for _, item := range slices.Sorted(maps.Keys(score.values)) {
			list = append(list, map[string]any{"name": item, "value": int64(score.values[item])})
		}
		lists[name] = list
	}
	object[scoresKey] = lists
	return map[string]any{"managedCluster": object}, nil
}

// scoresOf is managedCluster.scores(name): the items of an AddOnPlacementScore, by
// name. Where there is no such it is an error, as it is on hubs: an empty list
// would make true whatever is said of all items.
func scoresOf(cluster, name ref.Val) ref.Val {
	if object, ok := cluster.Value().(map[string]any); ok {
		if lists, ok := object[scoresKey].(map[string]any); ok {
			if list, ok := lists[fmt.Sprint(name.Value())]; ok {
				return types.DefaultTypeAdapter.NativeToValue(list)
			}
		}
	}
	return types.NewErr("no AddOnPlacementScore %v", name.Value())
}

// parseJSON is text.parseJSON(), for annotations and claims that hold an object.
func parseJSON(text ref.Val) ref.Val {
	var object map[string]any
	if err := json.Unmarshal([]byte(fmt.Sprint(text.Value())), &object); err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(object)
}
