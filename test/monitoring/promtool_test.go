//go:build foreign

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// promtool runs promtool of Prometheus; without it the test fails.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatalf("%v: install Prometheus' tools (on Debian and Ubuntu: apt-get install prometheus)", err)
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// words are the words of PromQL that may stand without a parenthesis: they are no metrics.
var words = []string{
	"and",
	"or",
	"unless",
	"on",
	"ignoring",
	"by",
	"without",
	"group_left",
	"group_right",
	"bool",
	"offset",
	"sum",
	"max",
	"min",
	"avg",
	"count",
	"inf",
	"nan",
}

var (
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	matchers   = regexp.MustCompile(`\{[^}]*\}`)
	durations  = regexp.MustCompile(`\[[^\]]*\]`)
	groupings  = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right) ?\([^)]*\)`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*( ?\()?`)
)

// metricsIn returns the names of the metrics in a query: all identifiers outside strings,
// matchers, durations and lists of labels, except functions and words.
func metricsIn(query string) (names []string) {
	for _, other := range []*regexp.Regexp{quoted, matchers, durations, groupings} {
		query = other.ReplaceAllString(query, " ")
	}
	for _, found := range identifier.FindAllString(query, -1) {
		if !strings.HasSuffix(found, "(") && !slices.Contains(words, found) {
			names = append(names, found)
		}
	}
	return names
}

// others are metrics of the libraries in Plimsoll's components, and of Prometheus
// itself.
var others = map[string]string{
	"up": "Prometheus",

	"scheduler_pending_pods":                               "kube-scheduler",
	"scheduler_schedule_attempts_total":                    "kube-scheduler",
	"scheduler_scheduling_attempt_duration_seconds_bucket": "kube-scheduler",

	"leader_election_master_status":             "client-go",
	"workqueue_depth":                           "controller-runtime",
	"workqueue_queue_duration_seconds_bucket":   "controller-runtime",
	"controller_runtime_reconcile_errors_total": "controller-runtime",
}

// known returns the names of all series that exist.
func known(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for name := range others {
		names[name] = true
	}
	for _, s := range sections {
		for _, m := range metricsOf(t, s) {
			names[m.name] = true
			if m.kind == "histogram" {
				delete(names, m.name)
				for _, suffix := range []string{"_bucket", "_count", "_sum"} {
					names[m.name+suffix] = true
				}
			}
		}
	}
	return names
}

// parse checks queries with promtool, as recording rules: promtool needs no server for
// them.
func parse(t *testing.T, queries []string) {
	t.Helper()
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, query := range queries {
		rules = append(rules, rule{"query", query})
	}
	raw, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	must.Succeed(t, err)
	file := filepath.Join(t.TempDir(), "queries.yaml")
	must.Succeed(t, os.WriteFile(file, raw, 0o600))
	promtool(t, "check", "rules", "--lint=none", file)
}
