package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestInvalidPolicy checks that errors name the field, and what it may be. A file with several policies is refused: one of them would be
// ignored.
func TestInvalidPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "---\napiVersion: plimsoll.dev/v1alpha1\nkind: ResourceSlack\nmetadata: {name: general}\nspec: {minRate: 10%}\n"
	with := func(field string) string { return strings.ReplaceAll(policy, "10%", "10%, "+field) }
	for _, tc := range []struct{ text, want string }{
		{"# comment\n" + policy + "---\n# comment\n", ""},
		{policy + policy, "policy.yaml: found 2 objects: must be one ResourceSlack"},
		{strings.ReplaceAll(policy, "minRate: 10%", ""), "policy.yaml: spec.minRate: Invalid value: \"\": must be a percentage such as 10%"},
		{policy + "image: x", `unknown field "image"`},
		{with("minimum: {cpus: 8}"), `unknown field "spec.minimum.cpus"; did you mean cpu?`},
		{strings.ReplaceAll(policy, "general", "My_Policy"), `metadata.name: Invalid value: "My_Policy": a lowercase RFC 1123 subdomain`},
		{strings.ReplaceAll(policy, "general", "a, labels: {a: b c}"), `metadata.labels: Invalid value: "b c": a valid label must be`},
		{with("mirrors: {namespaceSelector: {matchExpressions: [{key: a, operator: Like}]}}"), `matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`},
		{with("priorityClassName: system-node-critical"), `spec.priorityClassName: Invalid value: "system-node-critical": must be a class`},
		{with("pool: {nodeSelector: {a: b c}}"), `spec.pool.nodeSelector: Invalid value: "b c"`},
		{with("pool: {tolerations: [{key: a, operator: Equals}]}"), `tolerations[0].operator: Unsupported value: "Equals"`},
		{with("pool: {tolerations: [{operator: Exists, value: b}]}"), `tolerations[0].value: Invalid value: "b": must be empty if`},
		{with("pool: {tolerations: [{key: a/b/c, value: b c}]}"), `tolerations[0].key: Invalid value: "a/b/c"`},
		{with("pool: {tolerations: [{key: a, tolerationSeconds: 5}]}"), `effect: Invalid value: "": must be NoExecute if`},
		{with("schedules: [{from: 7 AM, to: 7 AM, minRate: 20%}]"), `spec.schedules[0].to: Invalid value: "7 AM": spec.schedules[0].to in body should match`},
		{with("schedules: [{days: [Mon], from: 07:30, to: 09:00}]"), "spec.schedules[0].days: json: cannot unmarshal array into Go struct field Schedule.spec.schedules.days of type string"},
		{"# comment\n", "policy.yaml: found 0 objects: must be one ResourceSlack"},
	} {
		must.Succeed(t, os.WriteFile(path, []byte(tc.text), 0o600))
		_, err := SlackPolicy(path, "rate", "")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
	// A file that is too large is read up to the limit only: this one is sparse.
	must.Succeed(t, os.Truncate(path, 1<<30))
	if _, err := SlackPolicy(path, "rate", ""); err == nil || !strings.Contains(err.Error(), "policy.yaml: exceeds the limit of 1 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

// TestLoadSource checks which plugin's arguments select the load source.
func TestLoadSource(t *testing.T) {
	const (
		head      = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
		lowRisk   = "- schedulerName: a\n  pluginConfig: [{name: LowRiskOverCommitment, args: {watcherAddress: 'http://low:2020'}}]\n"
		predicted = "- schedulerName: b\n  pluginConfig: [{name: PredictedUtilization, args: {watcherAddress: 'http://predicted:2020'}}]\n"
		neither   = "- schedulerName: c\n  pluginConfig: [{name: PredictedUtilization, args: {podUsage: {type: KubernetesMetricsServer}}}]\n"
	)
	for name, tc := range map[string]struct{ profiles, scheduler, want string }{
		"LowRiskOverCommitment": {lowRisk, "", "http://low:2020"},
		"PredictedUtilization":  {predicted, "", "http://predicted:2020"},
		"the first profile":     {neither + predicted + lowRisk, "", "http://predicted:2020"},
		"a named profile":       {predicted + lowRisk, "a", "http://low:2020"},
		"usage of pods only":    {neither, "", ""},
		"another profile":       {predicted + neither, "c", ""},
	} {
		file := filepath.Join(t.TempDir(), "scheduler.yaml")
		must.Succeed(t, os.WriteFile(file, []byte(head+tc.profiles), 0o600))
		source, err := (&Scheduler{Config: file, Name: tc.scheduler}).LoadSource()
		if want := file + ": no profile configures a load source: set watcherAddress or metricProvider in the arguments of " +
			"LowRiskOverCommitment or PredictedUtilization"; tc.want == "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
		if tc.want != source.Address || tc.want != "" && err != nil {
			t.Errorf("%s: source %q, want %q, error %v", name, source.Address, tc.want, err)
		}
	}
}
