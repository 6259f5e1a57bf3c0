package resources

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestDecodeStrictUnknown has fields that a pod has elsewhere, or in another form.
func TestDecodeStrictUnknown(t *testing.T) {
	for document, want := range map[string]string{
		"spec: {resource: {}}":                           `unknown field "spec.resource"; did you mean resources?`,
		"spec: {image: a}":                               `unknown field "spec.image"; did you mean spec.containers[].image?`,
		"spec: {containers: [{limits: {cpu: 1}}]}":       `unknown field "spec.containers[0].limits"; did you mean spec.containers[0].resources.limits?`,
		"spec: {labels: {a: b}}":                         `unknown field "spec.labels"; did you mean metadata.labels?`,
		"name: a":                                        `unknown field "name"; did you mean metadata.name?`,
		"nodeName: a":                                    `unknown field "nodeName"; did you mean spec.nodeName?`,
		"spec: {nodeselector: {}}":                       `unknown field "spec.nodeselector"; did you mean nodeSelector?`,
		"metadata: {label: {}}":                          `unknown field "metadata.label"; did you mean labels?`,
		"spec: {containers: [{resources: {requst: 1}}]}": `unknown field "spec.containers[0].resources.requst"; did you mean requests?`,
		"spec: {containers: [{resources: {cpu: 1}}]}": `unknown field "spec.containers[0].resources.cpu": ` +
			"must be one of claims, limits, requests",
	} {
		if err := DecodeStrict([]byte(document), &v1.Pod{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
	}
}
