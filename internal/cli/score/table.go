package score

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

// printScores prints the scores of all nodes for one pod, the best node first.
func printScores(out io.Writer, o *base.Output, pod engine.PodScores) {
	fmt.Fprintln(out, base.Escape(fmt.Sprintf("%s/%s -> %s", pod.Namespace, pod.Name, cmp.Or(pod.Selected, "no node"))))
	scoreTable{nodes: pod.Feasible(), all: pod.Nodes}.print(out, o)
	if reason := pod.Reason(pod.Selected); pod.Selected != "" {
		fmt.Fprintln(out, base.Escape(reason))
	}
	fmt.Fprintln(out)
}

// scoreTable is a table of the scores of nodes for one pod. It has a column for each plugin whose
// scores differ between nodes.
type scoreTable struct {
	// nodes are the rows, of feasible nodes. all decides which plugins differ; a line follows for each infeasible node in it.
	nodes, all []engine.NodeScores
	// extraColumns follow the total; extraCells returns their cells for a node.
	extraColumns []string
	extraCells   func(node string) []string
}

func (s scoreTable) print(out io.Writer, o *base.Output) {
	differing, equal := partitionPlugins(s.all)
	t := base.NewTable("node", "total")
	t.Add(s.extraColumns...)
	add := func(columns ...string) { t.Add(columns...) }
	if len(differing)+len(s.extraColumns) > maxColumns {
		add = t.Wide
	}
	for _, name := range differing {
		add(strings.TrimPrefix(name, "NodeResources"))
	}
	for _, node := range s.nodes {
		row := []any{node.Name, node.Total}
		if s.extraCells != nil {
			for _, cell := range s.extraCells(node.Name) {
				row = append(row, cell)
			}
		}
		for _, name := range differing {
			if plugin, ok := node.Plugins[name]; ok {
				row = append(row, formatScore(plugin))
			} else {
				row = append(row, "-")
			}
		}
		t.AddRow(row...)
	}
	t.Print(out, o)
	for _, node := range s.all {
		if !node.Feasible {
			fmt.Fprintln(out, base.Escape(node.Name+": "+node.Reason))
		}
	}
	printEqual(out, equal)
}

// rowsOf returns a function that adds a row to a table: a title, and a cell for each node.
func rowsOf[N any](t *base.Table, nodes []N) func(title string, cell func(N) string) {
	return func(title string, cell func(N) string) {
		cells := []any{title}
		for _, node := range nodes {
			cells = append(cells, cell(node))
		}
		t.AddRow(cells...)
	}
}

// printEqual prints the plugins whose scores are equal.
func printEqual(out io.Writer, equal []string) {
	if len(equal) > 0 {
		fmt.Fprintln(out, "the same on every node:", strings.Join(equal, ", "))
	}
}

// maxColumns is the number of plugins whose scores fit a terminal. If there are more, scores are printed only with -o wide.
const maxColumns = 3

// partitionPlugins separates the plugins whose scores differ between nodes from those whose scores
// are equal.
func partitionPlugins(nodes []engine.NodeScores) (differing, equal []string) {
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
			differing = append(differing, name)
		} else {
			equal = append(equal, name)
		}
	}
	return differing, equal
}

// formatScore returns the score of a plugin, followed by the raw score if normalization changed it. If the
// weight of the plugin is not 1, the weight follows, and the product that is added to the total.
func formatScore(s engine.PluginScore) string {
	text := fmt.Sprint(s.Score)
	if s.Raw != s.Score {
		text += fmt.Sprintf(" (%d)", s.Raw)
	}
	if s.Weight != 1 {
		text += fmt.Sprintf(" x%d = %d", s.Weight, s.Score*s.Weight)
	}
	return text
}
