package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Quantities that take hours to decode are refused before they are decoded, with object and field.
func TestAbsurdQuantities(t *testing.T) {
	pod := func(cpu string) string {
		return "kind: Pod\napiVersion: v1\nmetadata: {name: web}\nspec: {containers: [{name: a, resources: {requests: {cpu: " + cpu + "}}}]}"
	}
	const field = "Pod web: spec.containers[0].resources.requests.cpu: invalid quantity: "
	for name, tc := range map[string]struct{ document, want string }{
		"good":            {pod("1.5"), ""},
		"exponent":        {pod("1e12"), ""},
		"large":           {pod("1e2147483647"), field + `"1e2147483647": the exponent must be from -30 to 30`},
		"small":           {pod("'1e-2147483647'"), field + `"1e-2147483647"`},
		"zero":            {pod("'0e2147483647'"), "the exponent must be from -30 to 30"},
		"number":          {pod("1e300"), "the exponent must be from -30 to 30"},
		"escaped":         {pod(`"1e-1\x30000000"`), `the exponent must be from -30 to 30`},
		"binary":          {pod("!!binary MWUtMjE0NzQ4MzY0Nw=="), "the exponent must be from -30 to 30"},
		"many digits":     {pod(strings.Repeat("9", 100)), "the exponent must be from -30 to 30"},
		"digits as text":  {pod("'" + strings.Repeat("9", 100) + "'"), "has 100 characters, at most 64 are allowed"},
		"JSON number":     {`{"kind":"Pod","spec":{"overhead":{"cpu":1e-999999999}}}`, "spec.overhead.cpu: invalid quantity"},
		"JSON":            {`{"kind":"Pod","metadata":{"name":"web"},"spec":{"overhead":{"cpu":"1e-999999999"}}}`, "spec.overhead.cpu: invalid quantity"},
		"node":            {"kind: Node\nmetadata: {name: a}\nstatus:\n  capacity:\n    cpu: 1e999\n", "Node a: status.capacity.cpu: invalid quantity"},
		"list":            {"kind: List\nitems:\n- {spec: {containers: [{resources: {requests: {cpu: 1e999}}}]}}", "items[0].spec.containers[0].resources.requests.cpu: invalid quantity"},
		"label":           {"kind: Node\nmetadata: {name: a, labels: {commit: 1234e5678}}\n", ""},
		"hash":            {"kind: Node\nmetadata: {name: a, uid: 12345e78-1234-11e9-aaaa-123e45678901}\n", ""},
		"not a quantity":  {"kind: Job\nmetadata: {name: a}\nspec: {target: hello123e456}\n", ""},
		"escapes in text": {"kind: Job\nmetadata: {name: a}\nspec: {target: \"a\\u00e9\"}\n", ""},
	} {
		asJSON, err := toJSON([]byte(tc.document))
		must.Succeed(t, err)
		start := time.Now()
		err = resources.CheckQuantities(asJSON)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %s", name, took)
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	files := func(each func(string, []byte) error) error { return each("file", []byte(pod("'1e-2147483647'"))) }
	if _, err := ReadFrom(files, true); err == nil || !strings.Contains(err.Error(), field) {
		t.Errorf("cluster: %v", err)
	}
	hub := "{kind: ManagedCluster, apiVersion: cluster.open-cluster-management.io/v1, metadata: {name: a}, status: {capacity: {cpu: '1e-2147483647'}}}"
	files = func(each func(string, []byte) error) error { return each("file", []byte(hub)) }
	if _, err := ReadHubFrom(files, true); err == nil ||
		!strings.Contains(err.Error(), "ManagedCluster a: status.capacity.cpu: invalid quantity") {
		t.Errorf("hub: %v", err)
	}
}
