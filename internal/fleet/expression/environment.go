package expression

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	celcommon "k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// clusterVariable is the only variable of expressions.
const clusterVariable = "managedCluster"

// env is the environment of all expressions.
type env struct {
	cel *cel.Env
	// bindings has the implementations of functions by overload and by name.
	bindings map[string]*functions.Overload
}

// environment has the variable managedCluster, the functions of Kubernetes for
// versions, quantities, lists, formats, addresses and regular expressions, and scores and
// parseJSON. It is built at the first use, see Prepare.
var environment = sync.OnceValues(func() (*env, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	built, err := cel.NewEnv(
		cel.Variable(clusterVariable, object),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true), cel.EagerlyValidateDeclarations(true),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
		cel.ParserRecursionLimit(maxParseDepth), cel.ParserExpressionSizeLimit(maxTextLength),
		ext.Strings(ext.StringsVersion(4)), ext.Sets(),
		library.Quantity(), library.SemverLib(library.SemverVersion(1)), library.Lists(), library.Regex(), library.URLs(), library.IP(),
		library.CIDR(), library.Format(),
		cel.Function("scores", cel.MemberOverload("cluster_scores_string", []*cel.Type{cel.DynType, cel.StringType}, cel.ListType(object),
			cel.BinaryBinding(scoresOf))),
		cel.Function("parseJSON", cel.MemberOverload("string_parse_json", []*cel.Type{cel.StringType}, cel.DynType,
			cel.UnaryBinding(parseJSON))),
	)
	if err != nil {
		return nil, err
	}
	out := &env{built, map[string]*functions.Overload{}}
	for _, function := range built.Functions() {
		overloads, err := function.Bindings()
		if err != nil {
			return nil, err
		}
		for _, overload := range overloads {
			out.bindings[overload.Operator] = overload
		}
	}
	return out, nil
})

// Prepare builds the environment of expressions, so that the first expression does not
// wait for it.
func Prepare() error {
	_, err := Compile("", `managedCluster.metadata.name == ""`)
	return err
}

// Cluster is the variable managedCluster: a cluster as in JSON, and its scores.
type Cluster struct {
	traits.Mapper
	// scores returns the values of an AddOnPlacementScore, nil if there is none.
	scores func(name string) map[string]int32
}

// NewCluster returns the variable for a cluster, and for its scores by the name of an AddOnPlacementScore, nil for none. They must not be
// changed afterwards.
func NewCluster(c *clusterv1.ManagedCluster, scores func(name string) map[string]int32) *Cluster {
	parts := map[string]any{"metadata": &c.ObjectMeta, "spec": &c.Spec, "status": &c.Status}
	return &Cluster{types.NewStringInterfaceMap(lazyAdapter{}, parts), scores}
}

// lazyAdapter converts the parts of a cluster each time that an expression uses one, and their fields as far as it uses
// them: these values are not safe for concurrent use.
type lazyAdapter struct{}

// NativeToValue implements types.Adapter.
func (lazyAdapter) NativeToValue(part any) ref.Val { return celcommon.SchemalessTypedToVal(part) }

// scoresOf implements managedCluster.scores(name): the items of an
// AddOnPlacementScore, sorted by name. It fails if there is no such score, as in the
// controller of Open Cluster Management: all() would be true for an empty list.
func scoresOf(cluster, name ref.Val) ref.Val {
	value, isCluster := cluster.(*Cluster)
	text, isText := name.(types.String)
	if isCluster && isText {
		if values := value.scores(string(text)); values != nil {
			items := []map[string]any{}
			for _, item := range slices.Sorted(maps.Keys(values)) {
				items = append(items, map[string]any{"name": item, "value": int64(values[item])})
			}
			return types.DefaultTypeAdapter.NativeToValue(items)
		}
	}
	return types.NewErr("no AddOnPlacementScore %v", name.Value())
}

// parseJSON implements text.parseJSON(), for annotations and claims with JSON of any
// type. Numbers are doubles.
func parseJSON(text ref.Val) ref.Val {
	var value any
	if err := json.Unmarshal([]byte(fmt.Sprint(text.Value())), &value); err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}
