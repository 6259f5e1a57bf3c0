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

// parts returns the tables of all experiments that were run.
func (r results) parts() (all []part) {
	if e := r.real; e != nil {
		all = append(
			all,
			part{"real-targets", e.realTargetTable},
			part{"real-sums", e.realSums},
			part{"real-losses", e.lossTable},
			part{"real-gains", e.gainTable},
			part{"real-families", e.familyTable},
			part{"real-counts", e.countTable},
			part{"real-scenarios", e.realTable},
			part{"real-committed", e.committedTable},
			part{"real-setup", e.runTable},
			part{"real-ablations", e.ablations.sumsTable},
		)
	}
	if e := r.generated; e != nil {
		all = append(
			all,
			part{"targets", e.targetTable},
			part{"counts", e.countTable},
			part{"families", e.familyTable},
			part{"best", e.bestTable},
			part{"scenarios", e.scenarioTable},
			part{"committed", e.committedTable},
			part{"setup", e.setupTable},
			part{"variants", e.variants.sumsTable},
			part{"ablations", e.ablations.sumsTable},
		)
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
func (r results) fill(page string, complete bool) (string, error) {
	for _, p := range r.parts() {
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
