// Command crdgen completes the CRDs of ResourceSlack, ClusterCapacity, Placement and PlacementDecision that controller-gen generates, in
// place. It adds what markers cannot express for types of other projects. To Placement:
//
//   - Each requirement of a label or claim selector gets its operators and the validation rules of its
//     values. The lists that contain requirements get a maximum length, without which the rules exceed
//     the API server's CEL cost budget.
//   - The descriptions of these types are removed.
//
// In ResourceSlack and ClusterCapacity, quantities are bounded: decoding 1e-2147483647 takes hours.
//
// To Placement and PlacementDecision it adds version v1alpha1: to Placement with the same schema, and to PlacementDecision without the
// subresource status, so that an object is created with its decisions in one write. Everything else uses version v1beta1.
//
// It is part of make generate.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"

	"sigs.k8s.io/yaml"
)

// maxItems is the maximum length of the lists that contain requirements of selectors: the list of
// requirements and the list of predicates or groups around it.
const maxItems = 256

// foreignFields has the fields of the spec whose types are defined in other projects.
var foreignFields = []string{"predicates", "spreadPolicy", "tolerations", "decisionStrategy"}

// schema is a JSON schema.
type schema = map[string]any

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: crdgen FILE...")
		os.Exit(2)
	}
	for _, file := range os.Args[1:] {
		if err := rewrite(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// rewrite completes the CRD in a file.
func rewrite(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := complete(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, out, 0o644)
}

// complete returns the completed CRD. It is idempotent.
func complete(raw []byte) ([]byte, error) {
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
	switch names, _ := crd.Spec["names"].(schema); names["kind"] {
	case "PlacementDecision":
		if first, _ := versions[0].(schema); first["name"] != addedVersion && field(first, "subresources")["status"] == nil {
			return nil, errors.New("the only version must have the subresource status")
		}
		addVersion(crd.Spec, versions, "subresources")
		return marshal(crd, nil)
	case "ResourceSlack", "ClusterCapacity":
		boundQuantities(crd.Spec)
		return marshal(crd, nil)
	}
	if err := completePlacement(versions); err != nil {
		return nil, err
	}
	addVersion(crd.Spec, versions, "")
	return marshal(crd, nil)
}

// quantityPattern permits the quantities that clients decode in a short time: at most 30 digits, and an exponent of at most two.
const quantityPattern = `^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`

// boundQuantities replaces the patterns of quantities in a schema, which permit any exponent.
func boundQuantities(value any) {
	switch value := value.(type) {
	case schema:
		if value["x-kubernetes-int-or-string"] == true && value["pattern"] != nil {
			value["pattern"] = quantityPattern
		}
		for name := range value {
			boundQuantities(value[name])
		}
	case []any:
		for _, item := range value {
			boundQuantities(item)
		}
	}
}

// marshal returns a CRD as YAML, unless there is an error.
func marshal(crd any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	out, err := yaml.Marshal(crd)
	return append([]byte("---\n"), out...), err
}

// addedVersion is the version that addVersion adds.
const addedVersion = "v1alpha1"

// addVersion adds addedVersion to the versions in the spec of a CRD, unless they have it: a copy of the first version that is not stored
// and lacks a field.
func addVersion(spec map[string]any, versions []any, without string) {
	first, _ := versions[0].(schema)
	if first["name"] == addedVersion {
		return
	}
	added := maps.Clone(first)
	added["name"], added["storage"] = addedVersion, false
	delete(added, without)
	spec["versions"] = append([]any{added}, versions...)
}

// completePlacement completes the versions of the CRD of Placement.
func completePlacement(versions []any) error {
	for _, version := range versions {
		root := field(field(version, "schema"), "openAPIV3Schema")
		spec, status := field(field(root, "properties"), "spec"), field(field(root, "properties"), "status")
		if spec == nil || status == nil {
			return errors.New("a version without spec or status")
		}
		if !addRules(spec) {
			return errors.New("a version without selectors")
		}
		removeDescriptions(status)
		for _, name := range foreignFields {
			removeDescriptions(field(field(spec, "properties"), name))
		}
	}
	return nil
}

// field returns a field of an object if it is an object, or nil.
func field(object any, name string) schema {
	o, _ := object.(schema)
	member, _ := o[name].(schema)
	return member
}

// addRules adds rules to the requirements in a schema and maximum lengths to the lists that contain them.
// It reports whether there are any requirements.
func addRules(s schema) (found bool) {
	properties := field(s, "properties")
	operator := field(properties, "operator")
	if field(properties, "key") != nil && operator != nil && field(properties, "values") != nil {
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
		found = addRules(field(properties, name)) || found
	}
	if items := field(s, "items"); items != nil && addRules(items) {
		if s["maxItems"] == nil {
			s["maxItems"] = maxItems
		}
		return true
	}
	return found
}

// removeDescriptions removes the descriptions inside a schema, but not its own.
func removeDescriptions(s schema) {
	properties := field(s, "properties")
	for name := range properties {
		p := field(properties, name)
		delete(p, "description")
		removeDescriptions(p)
	}
	if items := field(s, "items"); items != nil {
		delete(items, "description")
		removeDescriptions(items)
	}
}
