//go:build foreign

package chart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// notes returns the notes that Helm prints after an installation with values.
func notes(t *testing.T, values string) string {
	t.Helper()
	out, err := tool.Run(t.Context(), "install", "plimsoll", tool.Chart, "--namespace=plimsoll-system", "--dry-run=client",
		valuesFile(t, values))
	must.Succeed(t, err)
	_, text, _ := strings.Cut(out, "NOTES:\n")
	return strings.TrimSpace(text)
}

// indentedLines matches the commands in the notes.
var indentedLines = regexp.MustCompile(`(?m)(?:^  .*\n?)+`)

// TestNotesCanBePasted expects that bash accepts the commands in the notes as they are printed.
func TestNotesCanBePasted(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]int{
		"": 4,
		"controller: {extraCapacityMinRate: 10%}":                4,
		"scheduler: {enabled: false}":                            3,
		"controller: {controllers: [placement]}":                 1,
		lowRisk:                                                  4,
		none + "crds: {keep: true}":                              0,
		alone("agent", ", clusterName: c, hub: {secretName: s}"): 1,
	} {
		text := notes(t, values)
		blocks := indentedLines.FindAllString(text+"\n", -1)
		if len(blocks) != want {
			t.Errorf("values %q: found %d blocks of commands, want %d:\n%s", values, len(blocks), want, text)
		}
		for _, block := range blocks {
			if err := (doccheck.Block{Page: "NOTES.txt", Text: block}).CheckPaste(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, values := range []string{lowRisk, "scheduler: {podUsage: null}"} {
		if got := notes(t, values); !strings.Contains(got, "No load source is configured") {
			t.Errorf("values %q: %s", values, got)
		}
	}
	for _, values := range []string{"", "loadWatcher: {enabled: true}\n" + lowRisk} {
		if got := notes(t, values); strings.Contains(got, "No load source is configured") {
			t.Errorf("values %q: %s", values, got)
		}
	}
}
