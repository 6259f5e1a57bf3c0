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
		"{}\n---\nspec: {}":                                  "found text after the end of the object: must be one object; manifests may have more, separated by lines with ---",
		"metadata: {}\n---\nspec: {}":                        "found text after the end of the object: must be one object; manifests may have more, separated by lines with ---",
		"\xff\xfes\x00p\x00e\x00c\x00":                       "found text that is not in UTF-8: must be UTF-8",
		" \n":                                                "found an empty file: must be YAML or JSON",
	} {
		if err := DecodeStrict([]byte(document), &v1.Pod{}); err == nil || want != "" && err.Error() != want {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
	}
}

// TestMergeKeys checks that a key may override a key of a merge, and that no key is given twice otherwise.
func TestMergeKeys(t *testing.T) {
	for document, want := range map[string]string{
		"# a Pod\n---\nx: 1\n---\n# end\n":                    `{"x":1}`,
		"a: &a {x: 1}\nb: {<<: *a, x: 2}":                     `{"a":{"x":1},"b":{"x":2}}`,
		"a: &a {x: 1}\nb:\n- <<: *a\n  x: 2\n  z: 3":          `{"a":{"x":1},"b":[{"x":2,"z":3}]}`,
		"a: &a {x: 1}\nc: &c {x: 3}\nb: {<<: [*a, *c], z: 2}": `{"a":{"x":1},"b":{"x":1,"z":2},"c":{"x":3}}`,
		"a: &a {x: 1}\nb: {<<: *a, x: 2, x: 3}":               "",
		"x: 1\nx: 2":                                          "",
	} {
		got, err := YAMLToJSON([]byte(document))
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, %v, want %s", document, got, err, want)
		}
	}
}
