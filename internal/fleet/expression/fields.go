package expression

import (
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// variableTypes has the type of the variable of expressions: a ManagedCluster without kind and apiVersion.
var variableTypes = map[string]reflect.Type{clusterVariable: reflect.TypeFor[struct {
	Metadata metav1.ObjectMeta              `json:"metadata"`
	Spec     clusterv1.ManagedClusterSpec   `json:"spec"`
	Status   clusterv1.ManagedClusterStatus `json:"status"`
}]()}

// unknownFields returns sentences about the fields in an expression that no cluster has. types has the types of variables.
func unknownFields(e ast.NavigableExpr, types map[string]reflect.Type) (unknown []string) {
	for i, part := range e.Children() {
		scope := types
		if e.Kind() == ast.ComprehensionKind && i > 0 { // a macro such as exists, whose variable is an element of the first part
			scope = maps.Clone(types)
			scope[e.AsComprehension().IterVar()] = elementOf(typeOf(e.Children()[0], types))
		}
		unknown = append(unknown, unknownFields(part, scope)...)
	}
	if operand, name := access(e); name != "" {
		if fields := resources.FieldsOf(typeOf(operand, types)); fields != nil && fields[name] == nil {
			unknown = append(unknown, "no cluster has the field "+name+format.Suggestion(name, slices.Sorted(maps.Keys(fields))))
		}
	}
	return unknown
}

// labelKeys returns the keys of labels in an expression.
func labelKeys(e ast.NavigableExpr) (keys []string) {
	for _, part := range e.Children() {
		keys = append(keys, labelKeys(part)...)
	}
	if operand, key := access(e); operand != nil && key != "" {
		if _, field := access(operand); field == "labels" {
			keys = append(keys, key)
		}
	}
	return keys
}

// access returns the operand and the field of x.name, x.?name and x["name"], and the operand of x[i]; nil for other expressions.
func access(e ast.NavigableExpr) (operand ast.NavigableExpr, name string) {
	if e.Kind() == ast.SelectKind {
		return e.Children()[0], e.AsSelect().FieldName()
	}
	functions := []string{operators.Index, operators.OptIndex, operators.OptSelect}
	if e.Kind() != ast.CallKind || !slices.Contains(functions, e.AsCall().FunctionName()) {
		return nil, ""
	}
	if index := e.Children()[1]; index.Kind() == ast.LiteralKind {
		name, _ = index.AsLiteral().Value().(string)
	}
	return e.Children()[0], name
}

// typeOf returns the type of a variable or a part of one, nil for other expressions.
func typeOf(e ast.NavigableExpr, types map[string]reflect.Type) reflect.Type {
	if e.Kind() == ast.IdentKind {
		return types[e.AsIdent()]
	}
	operand, name := access(e)
	switch {
	case operand == nil:
		return nil
	case name == "":
		return elementOf(typeOf(operand, types))
	}
	return resources.FieldsOf(typeOf(operand, types))[name]
}

// elementOf returns the type of the elements of a list, nil for other types.
func elementOf(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}
