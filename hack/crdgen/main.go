// Command crdgen finishes, in place, the CRD of Placement that controller-gen
// has made: it adds what no marker can say, because it is about types of other
// projects.
//
//   - Every requirement of a label or claim selector gets its operators and the
//     rules about its values, and the lists around it a bound, without which the
//     API server would find the rules too dear.
//   - The texts of those types are left out: they are not ours.
//
// It is part of make generate.
package main

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// maxItems bounds the lists that have a selector's requirements in them: the
// list of requirements itself, and that of the predicates or groups around it.
const maxItems = 256

// borrowed are the parts of a placement's spec whose types are others'.
var borrowed = []string{"predicates", "spreadPolicy", "tolerations", "decisionStrategy"}

// schema is a JSON schema.
type schema = map[string]any

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdgen FILE")
		os.Exit(2)
	}
	if err := rewrite(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rewrite finishes the CRD in a file.
func rewrite(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := finish(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, out, 0o644)
}

// finish returns the CRD finished. What is finished already stays as it is.
func finish(raw []byte) ([]byte, error) {
	var crd struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       map[string]any `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		return nil, err
	}
	versions, _ := crd.Spec["versions"].([]any)
	if len(versions) == 0 {
		return nil, errors.New("no versions")
	}
	for _, version := range versions {
		root := at(at(version, "schema"), "openAPIV3Schema")
		spec, status := at(at(root, "properties"), "spec"), at(at(root, "properties"), "status")
		if spec == nil || status == nil {
			return nil, errors.New("a version without spec or status")
		}
		if !bound(spec) {
			return nil, errors.New("a version without selectors")
		}
		silence(status)
		for _, name := range borrowed {
			silence(at(at(spec, "properties"), name))
		}
	}
	out, err := yaml.Marshal(crd)
	return append([]byte("---\n"), out...), err
}

// at returns a member of an object that is an object itself, or nil.
func at(object any, name string) schema {
	o, _ := object.(schema)
	member, _ := o[name].(schema)
	return member
}

// bound adds the rules of requirements to a schema, and bounds to its lists that
// have requirements in them. It returns whether there are any.
func bound(s schema) (found bool) {
	properties := at(s, "properties")
	if key, operator, values := at(properties, "key"), at(properties, "operator"), at(properties, "values"); key != nil && operator != nil && values != nil {
		operator["enum"] = []any{"In", "NotIn", "Exists", "DoesNotExist"}
		s["x-kubernetes-validations"] = []any{
			schema{
				"rule":      "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
				"message":   "must have a value where operator is In or NotIn",
				"fieldPath": ".values",
			},
			schema{
				"rule":      "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",
				"message":   "must be empty where operator is Exists or DoesNotExist",
				"fieldPath": ".values",
			},
		}
		return true
	}
	for name := range properties {
		found = bound(at(properties, name)) || found
	}
	if items := at(s, "items"); items != nil && bound(items) {
		if s["maxItems"] == nil {
			s["maxItems"] = maxItems
		}
		return true
	}
	return found
}

// silence takes the texts out of what is in a schema, but not its own.
func silence(s schema) {
	properties := at(s, "properties")
	for name := range properties {
		p := at(properties, name)
		delete(p, "description")
		silence(p)
	}
	if items := at(s, "items"); items != nil {
		delete(items, "description")
		silence(items)
	}
}
