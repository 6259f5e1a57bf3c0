package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// module is the path of this project, whose types have descriptions.
const module = "github.com/plimsoll-k8s/plimsoll/"

// comments has the comments on the fields of the structs of a package, by "Type.Field".
type comments map[string]string

// describer sets the descriptions of a schema to the comments on the fields of its Go types.
type describer struct {
	root     string
	packages map[string]comments
}

// describe sets the descriptions of the fields of a type, and of all types within it.
func (d *describer) describe(schema *jsonschema.Schema, of reflect.Type) error {
	if schema == nil {
		return nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		return d.describe(schema, of.Elem())
	case reflect.Slice, reflect.Array:
		return d.describe(schema.Items, of.Elem())
	case reflect.Map:
		return d.describe(schema.AdditionalProperties, of.Elem())
	case reflect.Struct:
		return d.describeStruct(schema, of)
	default:
		return nil
	}
}

// describeStruct sets the descriptions of the fields of a struct. Embedded structs without a name have the same schema.
func (d *describer) describeStruct(schema *jsonschema.Schema, of reflect.Type) error {
	found, err := d.commentsOf(of.PkgPath())
	if err != nil {
		return err
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			if err := d.describe(schema, field.Type); err != nil {
				return err
			}
			continue
		}
		property := schema.Properties[name]
		if property == nil {
			continue
		}
		if text := found[of.Name()+"."+field.Name]; text != "" {
			property.Description = text
		}
		if err := d.describe(property, field.Type); err != nil {
			return err
		}
	}
	return nil
}

// commentsOf returns the comments of a package of this project, none for other packages.
func (d *describer) commentsOf(path string) (comments, error) {
	folder, ok := strings.CutPrefix(path, module)
	if !ok {
		return nil, nil
	}
	if found, ok := d.packages[path]; ok {
		return found, nil
	}
	files, err := filepath.Glob(filepath.Join(d.root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: found no Go files", folder)
	}
	found := comments{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		found.addFile(parsed)
	}
	d.packages[path] = found
	return found, nil
}

// addFile adds the comments of a file.
func (c comments) addFile(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if structure, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					c[spec.Name.Name+"."+name.Name] = textOf(field)
				}
			}
		}
		return true
	})
}

// textOf returns the comment on a field in one line, without markers for generators. A comment on several fields at once
// is kept for each field, although it starts with the name of the first.
func textOf(field *ast.Field) string {
	var lines []string
	for line := range strings.SplitSeq(field.Doc.Text(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
