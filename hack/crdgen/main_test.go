package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const selector = `
            properties:
              predicates:
                description: own
                type: array
                items:
                  description: foreign
                  type: object
                  properties:
                    key: {type: string}
                    operator: {type: string}
                    values: {type: array}
`

func crd(spec string) string {
	return "spec:\n  versions:\n  - schema:\n      openAPIV3Schema:\n        properties:\n          status: {}\n          spec:" + spec
}

func TestComplete(t *testing.T) {
	out, err := complete([]byte(crd(selector)))
	must.Succeed(t, err)
	for _, want := range []string{"description: own", "maxItems: 256", "- DoesNotExist", "must have a value where operator is In or NotIn"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
	if strings.Contains(string(out), "foreign") {
		t.Errorf("a foreign description in %s", out)
	}
	again, err := complete(out)
	if diff := cmp.Diff(string(out), string(again)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestCompleteErrors checks that CRDs with an unexpected structure are rejected.
func TestCompleteErrors(t *testing.T) {
	for want, raw := range map[string]string{
		"no versions":                     "spec: {}",
		"a version without spec":          "spec: {versions: [{}]}",
		"a version without selectors":     crd(" {}"),
		`unknown field "status"`:          "status: {}",
		"error converting YAML to JSON: ": "{",
	} {
		if _, err := complete([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}

// TestCreationVersion checks that PlacementDecision gets a version without the subresource status, which is not stored.
func TestCreationVersion(t *testing.T) {
	const versions = "spec:\n  names: {kind: PlacementDecision}\n  versions:\n  - {name: v1beta1, served: true, storage: true, schema: {a: b}, "
	out, err := complete([]byte(versions + "subresources: {status: {}}}"))
	want := `---
apiVersion: ""
kind: ""
metadata: null
spec:
  names:
    kind: PlacementDecision
  versions:
  - name: v1alpha1
    schema:
      a: b
    served: true
    storage: false
  - name: v1beta1
    schema:
      a: b
    served: true
    storage: true
    subresources:
      status: {}
`
	if diff := cmp.Diff(want, string(out)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if again, err := complete(out); string(again) != want || err != nil {
		t.Errorf("%s, %v", again, err)
	}
	if _, err := complete([]byte(versions + "subresources: {}}")); err == nil || !strings.Contains(err.Error(), "subresource status") {
		t.Errorf("without a subresource: %v", err)
	}
}

// TestFilesAreComplete checks that the CRDs in the repository are complete.
func TestFilesAreComplete(t *testing.T) {
	for _, file := range []string{
		"cluster.open-cluster-management.io_placements.yaml", "ocm/cluster.open-cluster-management.io_placementdecisions.yaml",
	} {
		raw, err := os.ReadFile("../../config/crd/" + file)
		must.Succeed(t, err)
		out, err := complete(raw)
		if diff := cmp.Diff(string(raw), string(out)); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
}
