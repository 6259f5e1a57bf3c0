package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// rule is one line of the list.
type rule struct {
	words  *regexp.Regexp
	advice string
}

// parseRules returns the rules of a list. Empty lines and lines that start with # are skipped;
// the error names the line that is not a regular expression, a tab and an advice.
func parseRules(list string) ([]rule, error) {
	var rules []rule
	for i, line := range strings.Split(list, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, advice, ok := strings.Cut(line, "\t")
		if !ok || advice == "" {
			return nil, fmt.Errorf("line %d: found %q: must be a regular expression, a tab and an advice", i+1, line)
		}
		words, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		rules = append(rules, rule{words, advice})
	}
	return rules, nil
}

// check returns the findings of a file as lines "file:line: ...", in the order of the lines. Of Go
// source it checks comments, strings and the words of identifiers, of other files all text.
func check(file string, source []byte, rules []rule) []string {
	if !strings.HasSuffix(file, ".go") {
		return match(file, 1, string(source), rules)
	}
	var findings []string
	files := token.NewFileSet()
	tokens := files.AddFile(file, -1, len(source))
	var s scanner.Scanner
	s.Init(tokens, source, nil, scanner.ScanComments)
	// Lines of // comments are one text, so that a phrase is found across their ends.
	comment, first := "", 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.COMMENT {
			line := tokens.Line(pos)
			if comment != "" && line == first+strings.Count(comment, "\n")+1 {
				comment += "\n" + strings.TrimPrefix(text, "//")
				continue
			}
			findings = append(findings, match(file, first, comment, rules)...)
			comment, first = text, line
			continue
		}
		findings = append(findings, match(file, first, comment, rules)...)
		comment = ""
		if tok == token.EOF {
			return findings
		}
		if tok == token.IDENT {
			text = identifierWords(text)
		}
		if tok == token.IDENT || tok == token.STRING {
			findings = append(findings, match(file, tokens.Line(pos), text, rules)...)
		}
	}
}

// match returns the findings in a text whose first line has the given number.
func match(file string, line int, text string, rules []rule) []string {
	var findings []string
	for _, r := range rules {
		for _, at := range r.words.FindAllStringIndex(text, -1) {
			number := line + strings.Count(text[:at[0]], "\n")
			found := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
			findings = append(findings, fmt.Sprintf("%s:%d: %q: %s", file, number, found, r.advice))
		}
	}
	return findings
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// identifierWords returns the words of an identifier: "someNodeName" is "some Node Name".
func identifierWords(name string) string { return capital.ReplaceAllString(name, "$1 $2") }
