package testcluster

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// documented matches the rows of the tables in docs/metrics.md.
var documented = regexp.MustCompile("(?m)^\\| `(plimsoll_[a-z_]+)` \\|")

// ExpectMetrics checks that the metrics of a program are exactly the metrics in some sections
// of docs/metrics.md, and that promlint accepts them.
func ExpectMetrics(t *testing.T, body string, sections ...string) {
	t.Helper()
	raw, err := os.ReadFile(program.File(t, "docs/metrics.md"))
	must.Succeed(t, err)
	var want []string
	for _, section := range sections {
		_, rest, _ := strings.Cut(string(raw), "<!-- metrics of "+section+" -->\n")
		part, _, ok := strings.Cut(rest, "<!-- end of "+section+" -->\n")
		if !ok {
			t.Fatalf("docs/metrics.md has no section %s", section)
		}
		for _, row := range documented.FindAllStringSubmatch(part, -1) {
			// Metrics of pod usage exist only if a source of pod usage is configured, and this one only for nodes without usage.
			isOptional := strings.HasPrefix(row[1], "plimsoll_pod_usage_") || row[1] == "plimsoll_load_node_without_usage"
			if !isOptional || strings.Contains(body, row[1]) {
				want = append(want, row[1])
			}
		}
	}
	var found []string
	var ours strings.Builder
	for line := range strings.Lines(body) {
		name, isType := strings.CutPrefix(line, "# TYPE ")
		name, _, _ = strings.Cut(name, " ")
		if isType && strings.HasPrefix(name, "plimsoll_") {
			found = append(found, name)
		}
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "plimsoll_") {
			ours.WriteString(line)
		}
	}
	slices.Sort(want)
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Errorf("metrics\n%s\nwant those of %s in docs/metrics.md\n%s", strings.Join(found, "\n"), strings.Join(sections, " and "),
			strings.Join(want, "\n"))
	}
	problems, err := promlint.New(strings.NewReader(ours.String())).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// Scrape returns the lines of a program's metrics that begin with one of these prefixes.
func Scrape(t *testing.T, address string, prefixes ...string) string {
	t.Helper()
	page, err := program.Get(t.Context(), "http://"+address+"/metrics")
	must.Succeed(t, err)
	var out []string
	for line := range strings.Lines(page) {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
