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
	rules, err := parseRules("# a comment\n\nas it were\tleave it out\nwhilst\twhile")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, source string
		want         []string
	}{
		"clean":          {"a.go", "package a // as it is\n", nil},
		"comment":        {"a.go", "package a\n\n// As it were.\n", []string{`a.go:3: "As it were": leave it out`}},
		"over two lines": {"a.go", "package a\n\n// One, as it\n// were, and more.\n", []string{`a.go:3: "as it were": leave it out`}},
		"string":         {"a.go", "package a\n\nvar b = \"as it were\"\n", []string{`a.go:3: "as it were": leave it out`}},
		"raw string":     {"a.go", "package a\n\nvar b = `\n\nas it were`\n", []string{`a.go:5: "as it were": leave it out`}},
		"identifier":     {"a.go", "package a\n\nvar oddWhilst = 1\n", []string{`a.go:3: "Whilst": while`}},
		"code":           {"a.go", "package a\n\nfunc as(it were) {}\n", nil},
		"page":           {"a.md", "One\nwhilst, as it were.\n", []string{`a.md:2: "as it were": leave it out`, `a.md:2: "whilst": while`}},
		"page, two ends": {"a.md", "as it\nwere\n", []string{`a.md:1: "as it were": leave it out`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(tc.file, []byte(tc.source), rules); !slices.Equal(got, tc.want) {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
