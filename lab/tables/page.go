package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// fill returns a page with the tables between pairs of lines like these replaced:
//
//	<!-- results: targets -->
//	<!-- end of results -->
func (e *experiment) fill(page string) (string, error) {
	for _, part := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"targets", e.targetTable},
		{"counts", e.countTable},
		{"families", e.familyTable},
		{"best", e.bestTable},
		{"scenarios", e.scenarioTable},
		{"committed", e.committedTable},
		{"setup", e.setupTable},
		{"variants", e.variants.sumsTable},
		{"ablations", e.ablations.sumsTable},
	} {
		var table bytes.Buffer
		if err := part.write(&table); err != nil {
			return "", err
		}
		var err error
		if page, err = replace(page, part.name, strings.TrimSpace(table.String())); err != nil {
			return "", err
		}
	}
	return page, nil
}

const endMarker = "<!-- end of results -->"

// replace replaces the text between the markers of a part.
func replace(page, name, text string) (string, error) {
	marker := "<!-- results: " + name + " -->"
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
