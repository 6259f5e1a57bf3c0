package expression

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// unknownFields returns sentences about the fields in an expression that no cluster has.
func unknownFields(e ast.NavigableExpr) (unknown []string) {
	for _, part := range e.Children() {
		unknown = append(unknown, unknownFields(part)...)
	}
	if e.Kind() == ast.SelectKind {
		fields, name := fieldsOf(typeOf(e.AsSelect().Operand())), e.AsSelect().FieldName()
		if fields != nil && fields[name] == nil {
			unknown = append(unknown, "no cluster has the field "+name+format.Suggestion(name, slices.Sorted(maps.Keys(fields))))
		}
	}
	return unknown
}

// typeOf returns the type of a part of a cluster, nil for other expressions.
func typeOf(e ast.Expr) reflect.Type {
	switch {
	case e.Kind() == ast.IdentKind && e.AsIdent() == clusterVariable:
		return reflect.TypeFor[clusterv1.ManagedCluster]()
	case e.Kind() == ast.SelectKind:
		return fieldsOf(typeOf(e.AsSelect().Operand()))[e.AsSelect().FieldName()]
	}
	return nil
}

// fieldsOf returns the types of the fields of a type by name, nil if it has no fields. The variable has no type of the API.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	return fields
}
