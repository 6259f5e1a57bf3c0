package main

import (
	"strings"
	"testing"
)

func TestPartOf(t *testing.T) {
	for path, want := range map[string]string{
		"fmt":                                  "",
		module + "load":                        "load",
		module + "load/prometheus":             "load",
		module + "internal/algo/risk":          "internal/algo",
		module + "internal/scheduling/noderes": "internal/scheduling",
		module + "internal/scheduling/command": "internal/scheduling/command",
		module + "internal/version":            "",
		module + "test/support/helm":           "",
	} {
		if got := partOf(path); got != want {
			t.Errorf("partOf(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestMermaidLeavesOutWhatFollows(t *testing.T) {
	// cmd -> plugins -> load, and cmd -> load, which follows from the two.
	got, err := mermaid(parts([]string{
		module + "cmd/a fmt " + module + "plugins/b " + module + "load",
		module + "plugins/b " + module + "load/c",
		module + "load/c " + module + "load",
		"",
	}))
	want := "```mermaid\nflowchart TD\n  cmd[cmd] --> plugins[plugins]\n  plugins[plugins] --> load[load]\n```\n"
	if err != nil || got != want {
		t.Errorf("mermaid() = %q, %v, want %q", got, err, want)
	}
}

func TestMermaidRefusesCycles(t *testing.T) {
	_, err := mermaid(parts([]string{module + "load " + module + "slack", module + "slack " + module + "load"}))
	if err == nil || !strings.Contains(err.Error(), "load -> slack -> load") {
		t.Errorf("error %v, want the cycle", err)
	}
}

func TestReplace(t *testing.T) {
	page := "a\n" + begin + "\nold\n" + end + "\nb\n"
	if got, err := replace(page, "new\n"); err != nil || got != "a\n"+begin+"\nnew\n"+end+"\nb\n" {
		t.Errorf("replace() = %q, %v", got, err)
	}
	if _, err := replace("no markers", "new"); err == nil {
		t.Error("a page without markers is no error")
	}
}
