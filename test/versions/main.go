// Command versions runs integration tests against the real API servers of older versions of Kubernetes, and writes the results to
// docs/compatibility.md. Each folder beside it is a module with the kube-apiserver of a minor version: for another minor or patch release,
// copy or edit its go.mod. Run it in the root of the project.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// features are the rows of the table, and the tests that must pass with an API server.
var features = []struct {
	name  string
	tests []string
}{
	{"chart: install, upgrade, uninstall", []string{"TestChart"}},
	{"scheduler: the scenarios of the demo, with the rights of the chart", []string{"TestChartRunsTheScenarios"}},
	{"scheduler: 300 pods with spread, affinity and selectors, restarted in the burst", []string{"TestConstraintsAndRestart"}},
	{"scheduler: preemption", []string{"TestPreemption"}},
	{"scheduler: devices (DRA)", []string{"TestClaims"}},
	{"scheduler: usage of pods from metrics-server, history kept", []string{"TestMetricsServer", "TestSchedulerKeepsHistory"}},
	{
		"slack with `CapacityBuffer`, and without",
		[]string{
			"TestSlackController",
			"TestSlackMirrors",
			"TestSlackWithoutBuffers",
			"TestSlackBurstPreemptsPlaceholders",
			"TestResourceSlackValidation",
		},
	},
	{"placement", []string{"TestPlacementCRD", "TestPlacementAdoption", "TestPlimsollOnAHub"}},
	{"agent", []string{"TestAgent", "TestPlacementByAgents"}},
	{"snapshot, explain, what-if", []string{"TestSnapshot", "TestExplainLive"}},
	{"doctor", []string{"TestDoctor"}},
}

const (
	folder = "test/versions"
	page   = "docs/compatibility.md"
	// begin and end enclose the table in the page.
	begin, end = "<!-- begin: make test-versions -->\n", "<!-- end: make test-versions -->\n"
)

// column has the results for one version of the API server.
type column struct {
	version string
	passed  map[string]bool
}

func main() {
	only := flag.String("only", "", "minor version to test, such as 1.35, without writing the table (default all)")
	flag.Parse()
	if err := run(context.Background(), *only); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) error {
	modules, err := filepath.Glob(folder + "/*/go.mod")
	if err != nil || len(modules) == 0 {
		return fmt.Errorf("found no modules in %s: run it in the root of the project", folder)
	}
	dir, err := os.MkdirTemp("", "plimsoll-versions-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var columns []column
	for _, module := range modules {
		if minor := filepath.Base(filepath.Dir(module)); only == "" || only == minor {
			server, release, err := buildServer(ctx, dir, minor)
			if err != nil {
				return err
			}
			columns = append(columns, column{release, runTests(ctx, server, release)})
		}
	}
	if only == "" {
		release := version.Get().Kubernetes
		columns = append(columns, column{release, runTests(ctx, "", release)})
	}
	text, failed := table(columns)
	fmt.Print(text)
	if only == "" {
		if err := write(text); err != nil {
			return err
		}
	}
	if failed {
		return errors.New("tests have failed: see the log above")
	}
	return nil
}

// buildServer builds the kube-apiserver of a minor version, and returns its path and its version.
func buildServer(ctx context.Context, dir, minor string) (program, release string, err error) {
	module := filepath.Join(folder, minor)
	var out bytes.Buffer
	if err := execute(ctx, module, nil, &out, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"); err != nil {
		return "", "", err
	}
	release = strings.TrimSpace(out.String())
	fmt.Printf("== building kube-apiserver %s (about 5 minutes the first time on 2 cores)\n", release)
	const variables = "k8s.io/component-base/version."
	program = filepath.Join(dir, "kube-apiserver-"+minor)
	flags := fmt.Sprintf(
		"-X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=1 -X %[1]sgitMinor=%[3]s", variables, release, strings.TrimPrefix(minor, "1."),
	)
	return program, release, execute(ctx, module, []string{"CGO_ENABLED=0"}, os.Stdout,
		"go", "build", "-o", program, "-ldflags", flags, "k8s.io/kubernetes/cmd/kube-apiserver")
}

// result matches the line about the end of a test that is no subtest.
var result = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+) `)

// runTests runs the tests of all features with an API server, and returns those that passed. The embedded API server runs if server
// is empty. It prints the output of the tests if one has failed.
func runTests(ctx context.Context, server, release string) map[string]bool {
	var names []string
	for _, feature := range features {
		names = append(names, feature.tests...)
	}
	fmt.Printf("== testing with kube-apiserver %s\n", release)
	var out bytes.Buffer
	err := execute(ctx, ".", []string{controlplane.APIServerVariable + "=" + server}, &out, "go", "test", "-vet=off", "-p=1", "-v",
		"-count=1", "-tags=foreign", "-timeout=30m", "-run=^("+strings.Join(names, "|")+")$", "./test/integration/...",
		"./test/foreign/servers")
	if err != nil {
		fmt.Print(out.String())
	}
	passed := map[string]bool{}
	for _, found := range result.FindAllStringSubmatch(out.String(), -1) {
		fmt.Println(found[1], found[2])
		passed[found[2]] = found[1] == "PASS"
	}
	return passed
}

// table returns the table of the page, and whether a test has failed.
func table(columns []column) (text string, failed bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "Last run on %s, with `make test-versions`:\n\n| API server |", time.Now().Format(time.DateOnly))
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", strings.TrimPrefix(c.version, "v"))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, feature := range features {
		fmt.Fprintf(&b, "| %s |", feature.name)
		for _, c := range columns {
			cell := " passed |"
			if slices.ContainsFunc(feature.tests, func(test string) bool { return !c.passed[test] }) {
				cell, failed = " **failed** |", true
			}
			b.WriteString(cell)
		}
		b.WriteString("\n")
	}
	return b.String(), failed
}

// write replaces the table of the page.
func write(text string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(content), begin)
	_, after, alsoFound := strings.Cut(rest, end)
	if !found || !alsoFound {
		return fmt.Errorf("%s: found no table: must have the lines %q and %q", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(page, []byte(before+begin+text+end+after), 0o644)
}

// execute runs a command in a folder with additional environment variables.
func execute(ctx context.Context, dir string, environment []string, out io.Writer, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), environment...)
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args[:min(2, len(args))], " "), err)
	}
	return nil
}
