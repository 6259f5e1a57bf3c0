package resources

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestDecodeStrict checks that errors have the path, the sentence of the decoder, and the most similar field of the same level.
func TestDecodeStrict(t *testing.T) {
	for document, want := range map[string]string{
		"spec: {nodeselector: {}}":                       `unknown field "spec.nodeselector"; did you mean nodeSelector?`,
		"metadata: {label: {}}":                          `unknown field "metadata.label"; did you mean labels?`,
		"spec: {containers: [{resources: {requst: 1}}]}": `unknown field "spec.containers[0].resources.requst"; did you mean requests?`,
		"spec: {containers: [{limits: {cpu: 1}}]}":       `unknown field "spec.containers[0].limits"`,
		"name: a":                                  `unknown field "name"`,
		"spec: {priority: high}":                   "spec.priority: json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32",
		"spec: {containers: [{}, {image: [a]}]}":   "spec.containers[1].image: json: cannot unmarshal array into Go struct field Container.spec.containers.image of type string",
		"spec: {overhead: {example.com/gpu: two}}": "spec.overhead[example.com/gpu]: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		"[]":                               "json: cannot unmarshal array into Go value of type v1.Pod",
		"spec: {nodeName: a, nodeName: b}": `yaml: unmarshal errors:` + "\n" + `  line 1: key "nodeName" already set in map`,
		"spec: {containers: [{resources: {cpu: 1e100000}}]}": `unknown field "spec.containers[0].resources.cpu"`,
		"spec: {overhead: {cpu: 1e100000}}":                  "",
		" \n":                                                "found an empty file: must be YAML or JSON",
	} {
		if err := DecodeStrict([]byte(document), &v1.Pod{}); err == nil || want != "" && err.Error() != want {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
	}
}
