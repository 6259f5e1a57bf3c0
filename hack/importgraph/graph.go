package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	module = "github.com/plimsoll-k8s/plimsoll/"
	begin  = "<!-- import graph: written by make generate -->"
	end    = "<!-- end of import graph -->"
)

// graph has the parts of the project, each with those that it imports.
type graph map[string]map[string]bool

// partOf returns the part that a package belongs to, or "" if the diagram leaves it out: embedded
// files, build tools, tests and the version. A part is a folder at the top or below internal.
// kube-scheduler with the plugins is a part of its own: it is above the plugins, the rest of
// internal/scheduling below.
func partOf(path string) string {
	path, ours := strings.CutPrefix(path, module)
	names := strings.Split(path, "/")
	switch {
	case !ours, path == "internal/version":
		return ""
	case path == "internal/scheduling/command":
		return path
	case names[0] == "internal" && len(names) > 1:
		return "internal/" + names[1]
	case slices.Contains([]string{"api", "cmd", "load", "plugins", "slack"}, names[0]):
		return names[0]
	}
	return ""
}

// parts returns the graph of lines of "package import import ...".
func parts(lines []string) graph {
	g := graph{}
	for _, line := range lines {
		paths := strings.Fields(line)
		if len(paths) == 0 || partOf(paths[0]) == "" {
			continue
		}
		from := partOf(paths[0])
		if g[from] == nil {
			g[from] = map[string]bool{}
		}
		for _, path := range paths[1:] {
			if to := partOf(path); to != "" && to != from {
				g[from][to] = true
			}
		}
	}
	return g
}

// reaches reports whether there is a path from a part to another, of at least one arrow. The
// graph must not have cycles.
func (g graph) reaches(from, to string) bool {
	for next := range g[from] {
		if next == to || g.reaches(next, to) {
			return true
		}
	}
	return false
}

// cycle returns the parts of a cycle, nil if there is none.
func (g graph) cycle() []string {
	done := map[string]bool{}
	var visit func(part string, path []string) []string
	visit = func(part string, path []string) []string {
		if at := slices.Index(path, part); at >= 0 {
			return append(path[at:], part)
		}
		if done[part] {
			return nil
		}
		for _, next := range slices.Sorted(maps.Keys(g[part])) {
			if found := visit(next, append(path, part)); found != nil {
				return found
			}
		}
		done[part] = true
		return nil
	}
	for _, part := range slices.Sorted(maps.Keys(g)) {
		if found := visit(part, nil); found != nil {
			return found
		}
	}
	return nil
}

// mermaid returns the graph as a diagram, without the arrows that follow from others.
func mermaid(g graph) (string, error) {
	if cycle := g.cycle(); cycle != nil {
		return "", fmt.Errorf("parts import each other: %s", strings.Join(cycle, " -> "))
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	name := strings.NewReplacer("/", "_")
	for _, from := range slices.Sorted(maps.Keys(g)) {
		for _, to := range slices.Sorted(maps.Keys(g[from])) {
			implied := false
			for other := range g[from] {
				implied = implied || g.reaches(other, to)
			}
			if !implied {
				fmt.Fprintf(&b, "  %s[%s] --> %s[%s]\n", name.Replace(from), from, name.Replace(to), to)
			}
		}
	}
	b.WriteString("```\n")
	return b.String(), nil
}

// replace returns the page with the diagram between its markers.
func replace(page, diagram string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", errors.New("must have the markers " + begin + " and " + end)
	}
	return before + begin + "\n" + diagram + end + after, nil
}
