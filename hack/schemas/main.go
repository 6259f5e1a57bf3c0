// Command schemas writes the JSON Schemas of scheduler configurations with Plimsoll's plugins, of slack policies, and of
// the documents that commands print, from the Go types and the CRD. Editors check files by them. It is part of make
// generate.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// draft is the version of JSON Schema that editors support best.
const draft = "http://json-schema.org/draft-07/schema#"

// slackCRD is the definition of slack policies.
const slackCRD = "config/crd/plimsoll.dev_resourceslacks.yaml"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemas FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes all schemas to a folder.
func write(folder string) error {
	raw, err := os.ReadFile(slackCRD)
	if err != nil {
		return err
	}
	all, err := schemas(raw)
	if err != nil {
		return err
	}
	for name, schema := range all {
		text, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// schemas returns the schemas by their names.
func schemas(slackCRD []byte) (map[string]any, error) {
	scheduler, err := schedulerSchema()
	if err != nil {
		return nil, err
	}
	policy, err := crdSchema(slackCRD)
	if err != nil {
		return nil, err
	}
	all := map[string]any{"scheduler": scheduler, "resourceslack": policy}
	for name, of := range map[string]reflect.Type{
		"whatif": reflect.TypeFor[result.Result](), "doctor": reflect.TypeFor[[]doctor.Finding](),
		"backtest": reflect.TypeFor[compare.BacktestResult](),
	} {
		if all[name], err = schemaOf(of); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// schemaOf returns the schema of a Go type. Fields that it does not have are invalid.
func schemaOf(of reflect.Type) (*jsonschema.Schema, error) {
	schema, err := jsonschema.ForType(of, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[metav1.Duration](): {Type: "string", Description: "a duration such as 30s or 5m"},
	}})
	if err != nil {
		return nil, err
	}
	schema.Schema = draft
	return schema, (&describer{root: ".", packages: map[string]comments{}}).describe(schema, of)
}

// schedulerSchema returns the schema of a KubeSchedulerConfiguration with the arguments of Plimsoll's plugins. Fields of
// Kubernetes are not described further.
func schedulerSchema() (any, error) {
	var rules []any
	defaults := config.Defaults()
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		args, err := schemaOf(reflect.TypeOf(defaults[name]).Elem())
		if err != nil {
			return nil, err
		}
		args.Schema = ""
		rules = append(rules, object{
			"if":   object{"properties": object{"name": object{"const": name}}, "required": []string{"name"}},
			"then": object{"properties": object{"args": args}},
		})
	}
	plugin := object{"type": "object", "required": []string{"name"}, "properties": object{"name": object{"type": "string"}}, "allOf": rules}
	profile := object{"type": "object", "properties": object{
		"schedulerName": object{"type": "string"}, "plugins": object{"type": "object"},
		"pluginConfig": object{"type": "array", "items": plugin},
	}}
	return object{
		"$schema": draft, "type": "object", "required": []string{"apiVersion", "kind"}, "properties": object{
			"apiVersion": object{"const": "kubescheduler.config.k8s.io/v1"}, "kind": object{"const": "KubeSchedulerConfiguration"},
			"profiles": object{"type": "array", "items": profile},
		},
	}, nil
}

// object is a JSON object.
type object = map[string]any

// crdSchema returns the schema of the only version of a CRD.
func crdSchema(raw []byte) (any, error) {
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema object `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("found %d versions: must be one", len(crd.Spec.Versions))
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	schema["$schema"] = draft
	return schema, nil
}
