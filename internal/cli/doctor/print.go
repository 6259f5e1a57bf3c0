package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// levels are the levels of findings that are printed one by one, the most severe first.
var levels = []struct {
	level doctor.Level
	label string
}{
	{doctor.Problem, "PROBLEM"},
	{doctor.Warning, "WARNING"},
}

// printFindings prints the problems, the warnings, each with its remedy, and the checks without either in one line.
func printFindings(out io.Writer, findings []doctor.Finding) {
	for _, l := range levels {
		for _, f := range ofLevel(findings, l.level) {
			fmt.Fprintf(out, "%s %s: %s\n", l.label, f.Check, base.Escape(f.Message))
			if f.Fix != "" {
				fmt.Fprintf(out, "  remedy: %s\n", base.Escape(f.Fix))
			}
			fmt.Fprintln(out)
		}
	}
	if fine := fineChecks(findings); len(fine) > 0 {
		fmt.Fprintf(out, "OK %s\n", base.Escape(strings.Join(fine, ", ")))
	}
	fmt.Fprintln(out, summary(findings))
}

// printMarkdown prints the findings as printFindings does, as a table with a list of the other checks.
func printMarkdown(out io.Writer, findings []doctor.Finding) {
	fmt.Fprintf(out, "### plimsoll doctor: %s\n\n", summary(findings))
	t := base.NewTable("level", "check", "finding", "remedy")
	rows := 0
	for _, l := range levels {
		for _, f := range ofLevel(findings, l.level) {
			t.AddRow(string(l.level), f.Check, f.Message, f.Fix)
			rows++
		}
	}
	if rows > 0 {
		t.Markdown(out)
		fmt.Fprintln(out)
	}
	if fine := fineChecks(findings); len(fine) > 0 {
		fmt.Fprintf(out, "OK: %s\n", base.EscapeMarkdown(base.Escape(strings.Join(fine, ", "))))
	}
}

// ofLevel returns the findings of a level.
func ofLevel(findings []doctor.Finding, level doctor.Level) []doctor.Finding {
	var out []doctor.Finding
	for _, f := range findings {
		if f.Level == level {
			out = append(out, f)
		}
	}
	return out
}

// fineChecks returns the names of the checks whose findings are all OK, in their order.
func fineChecks(findings []doctor.Finding) []string {
	var fine []string
	for _, f := range findings {
		other := func(g doctor.Finding) bool { return g.Check == f.Check && g.Level != doctor.OK }
		if !slices.Contains(fine, f.Check) && !slices.ContainsFunc(findings, other) {
			fine = append(fine, f.Check)
		}
	}
	return fine
}

// summary returns the numbers of problems, warnings and checks.
func summary(findings []doctor.Finding) string {
	checks := map[string]bool{}
	for _, f := range findings {
		checks[f.Check] = true
	}
	return fmt.Sprintf("%s, %s, %s", format.Of(len(ofLevel(findings, doctor.Problem)), "problem"),
		format.Of(len(ofLevel(findings, doctor.Warning)), "warning"), format.Of(len(checks), "check"))
}
