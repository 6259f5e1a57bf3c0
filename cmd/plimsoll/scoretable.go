package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// printScores prints one table: the nodes, best first, and what the plugins
// that tell them apart add to their totals.
func printScores(out io.Writer, pod engine.PodScores) {
	fmt.Fprintf(out, "%s/%s -> %s\n", pod.Namespace, pod.Name, cmp.Or(pod.Selected, "no node"))
	scoreTable{nodes: bestFirst(pod.Nodes), all: pod.Nodes, cell: describeScore}.render(out)
	if reason := pod.Reason(pod.Selected); pod.Selected != "" {
		fmt.Fprintln(out, reason)
	}
	fmt.Fprintln(out)
}

// bestFirst returns the nodes that the pod fits, the best first, and then the others.
func bestFirst(nodes []engine.NodeScores) []engine.NodeScores {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b engine.NodeScores) int {
		if a.Feasible != b.Feasible {
			return cmp.Compare(len(a.Reason), len(b.Reason)) // feasible nodes have none
		}
		return cmp.Compare(b.Total, a.Total)
	})
	return nodes
}

// scoreTable is nodes with their scores for one pod.
type scoreTable struct {
	// nodes to show, of all that there are.
	nodes, all []engine.NodeScores
	// cell returns what a plugin said.
	cell func(engine.PluginScore) string
	// more columns after the total, and what is in them.
	more []string
	say  func(node string) []string
}

func (s scoreTable) render(out io.Writer) {
	telling, same := tellingPlugins(s.all)
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"node", "total"}
	for _, name := range s.more {
		header = append(header, name)
	}
	for _, name := range telling {
		header = append(header, wrapName(name))
	}
	t.AppendHeader(append(header, "why not"))
	for _, node := range s.nodes {
		row := table.Row{node.Name, node.Total}
		if !node.Feasible {
			row[1] = "-"
		}
		if s.say != nil {
			for _, cell := range s.say(node.Name) {
				row = append(row, cell)
			}
		}
		for _, name := range telling {
			if plugin, ok := node.Plugins[name]; ok {
				row = append(row, s.cell(plugin))
			} else {
				row = append(row, "-")
			}
		}
		t.AppendRow(append(row, node.Reason))
	}
	t.SuppressEmptyColumns()
	t.Render()
	if len(same) > 0 {
		fmt.Fprintln(out, "the same on every node:", strings.Join(same, ", "))
	}
}

// tellingPlugins parts the plugins that score some nodes otherwise than others
// from those that do not.
func tellingPlugins(nodes []engine.NodeScores) (telling, same []string) {
	scores := map[string]map[int64]bool{}
	for _, node := range nodes {
		for name, plugin := range node.Plugins {
			if scores[name] == nil {
				scores[name] = map[int64]bool{}
			}
			scores[name][plugin.Score] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		if len(scores[name]) > 1 {
			telling = append(telling, name)
		} else {
			same = append(same, name)
		}
	}
	return telling, same
}

// describeScore returns what a plugin said: its score, its weight unless that
// is 1, and the raw score where it is another.
func describeScore(s engine.PluginScore) string {
	description := fmt.Sprint(s.Score)
	if s.Weight != 1 {
		description += fmt.Sprintf(" x%d", s.Weight)
	}
	if s.Raw != s.Score {
		description += fmt.Sprintf("\n(%d)", s.Raw)
	}
	return description
}

// wrapName breaks the long names of plugins where a word begins, so that a
// table of them fits a terminal.
func wrapName(name string) string {
	var b strings.Builder
	width := 0
	for i, c := range name {
		if i > 0 && c >= 'A' && c <= 'Z' && width >= 8 {
			b.WriteByte('\n')
			width = 0
		}
		b.WriteRune(c)
		width++
	}
	return b.String()
}
