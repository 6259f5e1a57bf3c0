package main

import (
	"slices"
	"testing"
)

func TestTheListIsValid(t *testing.T) {
	rules, err := parseRules(list)
	if err != nil || len(rules) == 0 {
		t.Fatalf("%d rules, error %v", len(rules), err)
	}
}

func TestRuleErrors(t *testing.T) {
	for _, text := range []string{"word without advice", "word\t", "(\tadvice"} {
		if _, err := parseRules(text); err == nil {
			t.Errorf("parseRules(%q) reports no error", text)
		}
	}
}

func TestCheck(t *testing.T) {
	rules, err := parseRules("# a comment\n\nof yore\tleave it out\nwhilst\twhile")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, source string
		want         []string
	}{
		"clean":          {"a.go", "package a // of old\n", nil},
		"comment":        {"a.go", "package a\n\n// Of yore.\n", []string{`a.go:3: "Of yore": leave it out`}},
		"over two lines": {"a.go", "package a\n\n// One, of\n// yore, and more.\n", []string{`a.go:3: "of yore": leave it out`}},
		"string":         {"a.go", "package a\n\nvar b = \"of yore\"\n", []string{`a.go:3: "of yore": leave it out`}},
		"raw string":     {"a.go", "package a\n\nvar b = `\n\nof yore`\n", []string{`a.go:5: "of yore": leave it out`}},
		"identifier":     {"a.go", "package a\n\nvar oddWhilst = 1\n", []string{`a.go:3: "Whilst": while`}},
		"code":           {"a.go", "package a\n\nfunc of(yore int) {}\n", nil},
		"page":           {"a.md", "One\nwhilst, of yore.\n", []string{`a.md:2: "of yore": leave it out`, `a.md:2: "whilst": while`}},
		"page, two ends": {"a.md", "of\nyore\n", []string{`a.md:1: "of yore": leave it out`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(tc.file, []byte(tc.source), rules); !slices.Equal(got, tc.want) {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
