package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// part is a table of a page.
type part struct {
	name  string
	write func(io.Writer) error
}

// parts returns the tables of an experiment.
func (e *experiment) parts() []part {
	all := []part{
		{"targets", e.targetTable},
		{"sums", e.sumTable},
		{"losses", e.lossTable},
		{"gains", e.gainTable},
		{"families", e.familyTable},
		{"counts", e.countTable},
		{"scenarios", e.scenarioTable},
		{"committed", e.committedTable},
		{"setup", e.runTable},
	}
	if e.ablations != nil {
		all = append(all, part{"ablations", e.ablations.profileTable})
	}
	if e.levels != nil {
		all = append(all, part{"levels", e.levelTable})
	}
	return all
}

// marker returns the line before the table with a name.
func marker(name string) string { return "<!-- results: " + name + " -->" }

// fill returns a page with the tables between pairs of lines like these replaced:
//
//	<!-- results: targets -->
//	<!-- end of results -->
//
// A complete page must have all tables.
func (e *experiment) fill(page string, complete bool) (string, error) {
	for _, p := range e.parts() {
		if !complete && !strings.Contains(page, marker(p.name)) {
			continue
		}
		var table bytes.Buffer
		err := p.write(&table)
		if err != nil {
			return "", err
		}
		if page, err = replace(page, p.name, strings.TrimSpace(table.String())); err != nil {
			return "", err
		}
	}
	return page, nil
}

const endMarker = "<!-- end of results -->"

// replace replaces the text between the markers of a part.
func replace(page, name, text string) (string, error) {
	marker := marker(name)
	before, rest, found := strings.Cut(page, marker)
	if !found || strings.Contains(rest, marker) {
		return "", fmt.Errorf("must have %s once", marker)
	}
	_, after, found := strings.Cut(rest, endMarker)
	if !found {
		return "", fmt.Errorf("must have %s after %s", endMarker, marker)
	}
	return before + marker + "\n" + text + "\n" + endMarker + after, nil
}
