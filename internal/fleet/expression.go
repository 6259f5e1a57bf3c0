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

// maxCost is the cost limit of one expression for one cluster, in units of CEL:
// comparing two numbers costs 1. The API server allows ten times as much for a rule.
const maxCost = 1_000_000

// expression is a condition on clusters in CEL.
type expression struct {
	text    string
	program cel.Program
}

// errCost is the error of expressions that exceed maxCost.
var errCost = fmt.Errorf("costs more than %d for one cluster: simplify it", maxCost)

// environment has the variable managedCluster, the functions of Kubernetes for
// versions, quantities, lists, addresses and regular expressions, and those of placements.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(
		cel.Variable("managedCluster", object),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(),
		library.Quantity(), library.SemverLib(library.SemverVersion(1)), library.Lists(), library.Regex(), library.URLs(), library.IP(),
		library.CIDR(),
		cel.Function("scores", cel.MemberOverload("cluster_scores_string", []*cel.Type{object, cel.StringType}, cel.ListType(object),
			cel.BinaryBinding(scoresOf))),
		cel.Function("parseJSON", cel.MemberOverload("string_parse_json", []*cel.Type{cel.StringType}, object,
			cel.UnaryBinding(parseJSON))),
	)
})

// compileExpression compiles an expression with a boolean result.
func compileExpression(text string) (*expression, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		// The lines after the first one repeat the expression.
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(strings.TrimPrefix(first, "ERROR: <input>:"))
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("must be true or false, is of type %s", t)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	return &expression{text, program}, nil
}

// matches reports whether the expression is true for a cluster. It is false if the
// cluster does not have a field that the expression uses, such as a label. The only
// error is errCost.
func (e *expression) matches(variables map[string]any) (bool, error) {
	out, _, err := e.program.Eval(variables)
	if err != nil {
		if cost, ok := errors.AsType[*types.Err](err); ok && isCostError(cost) || isCostError(err) {
			return false, fmt.Errorf("%q %w", e.text, errCost)
		}
		return false, nil // the cluster does not have a field of the expression
	}
	return out == types.True, nil
}

// isCostError reports whether an evaluation exceeded the cost limit. CEL has no type
// for this error, only its text.
func isCostError(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasSuffix(err.Error(), "actual cost limit exceeded") {
			return true
		}
	}
	return false
}

// scoresKey is the key of the scores of add-ons in the variables of a cluster.
const scoresKey = "\x00scores"

// variablesOf returns the variables of expressions for a cluster.
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

// scoresOf implements managedCluster.scores(name): the items of an
// AddOnPlacementScore, sorted by name. It fails if there is no such score, as in the
// controller of Open Cluster Management: all() would be true for an empty list.
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

// parseJSON implements text.parseJSON(), for annotations and claims with a JSON object.
func parseJSON(text ref.Val) ref.Val {
	var object map[string]any
	if err := json.Unmarshal([]byte(fmt.Sprint(text.Value())), &object); err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(object)
}
