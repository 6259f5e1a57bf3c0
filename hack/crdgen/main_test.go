package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const selector = `
            properties:
              predicates:
                description: ours
                type: array
                items:
                  description: theirs
                  type: object
                  properties:
                    key: {type: string}
                    operator: {type: string}
                    values: {type: array}
`

func crd(spec string) string {
	return "spec:\n  versions:\n  - schema:\n      openAPIV3Schema:\n        properties:\n          status: {}\n          spec:" + spec
}

func TestFinish(t *testing.T) {
	out, err := finish([]byte(crd(selector)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"description: ours", "maxItems: 256", "- DoesNotExist", "must have a value where operator is In or NotIn"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
	if strings.Contains(string(out), "theirs") {
		t.Errorf("text of others in %s", out)
	}
	again, err := finish(out)
	if diff := cmp.Diff(string(out), string(again)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// What is not the CRD that it knows is an error: it would be left unfinished.
func TestFinishRefuses(t *testing.T) {
	for want, raw := range map[string]string{
		"no versions":                     "spec: {}",
		"a version without spec":          "spec: {versions: [{}]}",
		"a version without selectors":     crd(" {}"),
		`unknown field "status"`:          "status: {}",
		"error converting YAML to JSON: ": "{",
	} {
		if _, err := finish([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}

// The CRD that is there is finished.
func TestIsFinished(t *testing.T) {
	raw, err := os.ReadFile("../../config/crd/cluster.open-cluster-management.io_placements.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, err := finish(raw)
	if diff := cmp.Diff(string(raw), string(out)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
