package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestLargePolicy checks that a file that is too large is read only up to the limit.
func TestLargePolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "apiVersion: plimsoll.dev/v1alpha1\nkind: ResourceSlack\nmetadata: {name: general}\nspec: {minRate: 10%}\n"
	must.Succeed(t, os.WriteFile(path, []byte(policy), 0o600))
	for _, tc := range []struct {
		size int64
		want string // part of the error, empty for none
	}{
		{int64(len(policy)), ""},
		{1 << 30, "policy.yaml: exceeds the limit of 1 MiB"}, // sparse
	} {
		must.Succeed(t, os.Truncate(path, tc.size))
		_, err := SlackPolicy(path, "rate", "")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d bytes: %v, want %q", tc.size, err, tc.want)
		}
	}
}

// TestInvalidPolicy checks that errors name the field, and what it may be. A file with several policies is refused: one of them would be
// ignored.
func TestInvalidPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "---\napiVersion: plimsoll.dev/v1alpha1\nkind: ResourceSlack\nmetadata: {name: general}\nspec: {minRate: 10%}\n"
	with := func(field string) string { return strings.ReplaceAll(policy, "10%", "10%, "+field) }
	for _, tc := range []struct{ text, want string }{
		{"# comment\n" + policy + "---\n# comment\n", ""},
		{policy + policy, "policy.yaml: found 2 objects: must be one ResourceSlack"},
		{strings.ReplaceAll(policy, "minRate: 10%", ""), "policy.yaml: spec.minRate: Required value: must be a percentage such as 10%"},
		{strings.ReplaceAll(policy, "10%", "10"), "policy.yaml: spec.minRate: invalid value 10: must be a percentage such as 10%"},
		{strings.ReplaceAll(policy, "{minRate", "\n\t{minRate"), `line 6, "{minRate: 10%}": found a tab or a special character: indent with spaces, put values in quotes`},
		{policy + "image: x", `unknown field "image": must be one of apiVersion, kind, metadata, spec, status`},
		{with("minimum: {cpus: 8}"), `unknown field "spec.minimum.cpus"; did you mean cpu?`},
		{with("pool: {pool: gpu}"), `unknown field "spec.pool.pool": must be one of devices, nodeSelector, nodeShape, tolerations`},
		{with("mirrors: {namespaceSelector: {team: a}}"), `Selector.team": must be one of matchExpressions, matchLabels`},
		{strings.ReplaceAll(policy, "general", "My_Policy"), `metadata.name: Invalid value: "My_Policy": a lowercase RFC 1123 subdomain`},
		{strings.ReplaceAll(policy, "general", "a, labels: {a: b c}"), `metadata.labels: Invalid value: "b c": a valid label must be`},
		{with("mirrors: {namespaceSelector: {matchExpressions: [{key: a, operator: Like}]}}"), "must be In, NotIn, Exists or DoesNotExist"},
		{with("priorityClassName: system-node-critical"), `spec.priorityClassName: Invalid value: "system-node-critical": must be a class`},
		{with("priorityClassName: High_Prio"), `spec.priorityClassName: Invalid value: "High_Prio": a lowercase`},
		{with("pool: {nodeSelector: {a: b c}}"), `spec.pool.nodeSelector: Invalid value: "b c"`},
		{with("pool: {tolerations: [{key: a, operator: Equals}]}"), `tolerations[0].operator: Unsupported value: "Equals"`},
		{with("pool: {tolerations: [{key: a, effect: NoSchedul}]}"), `tolerations[0].effect: Unsupported value: "NoSchedul"`},
		{with("pool: {tolerations: [{operator: Exists, value: b}]}"), `tolerations[0].value: Invalid value: "b": must be empty if`},
		{with("pool: {tolerations: [{key: a/b/c, value: b c}]}"), `tolerations[0].key: Invalid value: "a/b/c"`},
		{with("pool: {tolerations: [{key: a, tolerationSeconds: 5}]}"), `effect: Invalid value: "": must be NoExecute if`},
		{with("schedules: [{from: 7 AM, to: 7 AM, minRate: 20%}]"), `spec.schedules[0].to: Invalid value: "7 AM": must be a time of day`},
		{with("schedules: [{days: [Mon], from: 07:30, to: 09:00}]"), `spec.schedules[0].days: invalid value ["Mon"]: must be days and ranges such as Mon-Fri or Sat,Sun`},
		{with("pool: {nodeSelector: {matchLabels: {a: b}}}"), "must be a string: write the labels without matchLabels"},
		{with("pool: {nodeSelector: {matchExpressions: []}}"), "must be a string: only labels are allowed, as in {pool: general}"},
		{with("mirrors: {namespaceSelector: {matchLabels: a}}"), "namespaceSelector.matchLabels: invalid value \"a\": must be an object"},
		{"# comment\n", "policy.yaml: found 0 objects: must be one ResourceSlack"},
	} {
		must.Succeed(t, os.WriteFile(path, []byte(tc.text), 0o600))
		_, err := SlackPolicy(path, "rate", "")
		if (err == nil) != (tc.want == "") ||
			err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "regex")) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
}
