package score

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

// compared is the number of nodes that fit a table with a column for each.
const compared = 2

// maxName is the length to which names of nodes are cut in that table.
const maxName = 26

// print prints the best feasible nodes, why other nodes are infeasible, and the reason of the
// result. top limits the number of nodes; the node of the pod is always printed.
func (e *explanation) print(out io.Writer, o *base.Output, top int) {
	location := "which has no node"
	if e.Node != "" {
		location = "on " + e.Node
	}
	fmt.Fprintln(out, base.Escape(fmt.Sprintf("%s/%s, %s", e.Namespace, e.Name, location)))
	fmt.Fprintln(out, base.Escape(fmt.Sprintf("profile %s of %s", e.Profile.SchedulerName, e.Profile.Source)))
	feasible := e.Scores.Feasible()
	shown := feasible
	if top > 0 && len(shown) > top {
		shown = slices.Clone(shown[:top])
		if i := slices.IndexFunc(feasible[top:], func(n engine.NodeScores) bool { return n.Name == e.Node }); i >= 0 {
			shown[top-1] = feasible[top+i]
		}
	}
	switch {
	case len(shown) > 0 && (top > compared || top == 0 || o.Format == base.FormatWide):
		e.table(shown, feasible).print(out, o)
	case len(shown) > 0:
		e.compare(out, o, shown, feasible)
	}
	if more := len(feasible) - len(shown); more > 0 {
		fmt.Fprintf(out, "and %d more feasible nodes (--top)\n", more)
	}
	for _, plugin := range slices.Sorted(maps.Keys(e.Expected)) {
		fmt.Fprintf(out, "%s expects of the pod: %s\n", plugin, base.Escape(e.Expected[plugin]))
	}
	for _, r := range e.Scores.Rejections() {
		line := fmt.Sprintf("infeasible, %d: %s: %s", len(r.Nodes), r.Reason, format.Abbreviate(r.Nodes, maxNames, ", "))
		fmt.Fprintln(out, base.Escape(line))
	}
	if e.Load != nil {
		over := "mean ± deviation over " + format.Age(seconds(e.Load.WindowSeconds))
		if e.Load.isCurrent {
			over = "current use"
		}
		fmt.Fprintf(out, "load: %s, from %s, %s old\n", over, base.Escape(e.Load.Source), format.Age(seconds(e.Load.AgeSeconds)))
	} else {
		fmt.Fprintln(out, "load: unknown")
	}
	fmt.Fprintln(out, base.Escape(e.Reason))
}

// compare prints a table with a row for each plugin whose scores differ, and a column for each of the nodes.
func (e *explanation) compare(out io.Writer, o *base.Output, nodes, all []engine.NodeScores) {
	next := "next"
	if len(nodes) > 1 && nodes[1].Name == e.Node {
		next = "current"
	}
	t := base.NewTable("plugin", "best", next)
	row := rowsOf(t, nodes)
	row("node", func(node engine.NodeScores) string { return format.Shorten(node.Name, maxName) })
	row("total", func(node engine.NodeScores) string { return fmt.Sprint(node.Total) })
	if table := e.table(nodes, all); e.Load != nil {
		for i, column := range table.extraColumns {
			row(column, func(node engine.NodeScores) string { return table.extraCells(node.Name)[i] })
		}
	}
	differing, equal := partitionPlugins(all)
	for _, name := range differing {
		row(strings.TrimPrefix(name, "NodeResources"), func(node engine.NodeScores) string { return formatScore(node.Plugins[name]) })
		for i, why := range strings.Split(nodes[0].Plugins[name].Why, "; ") {
			resource, _, found := strings.Cut(why, " ")
			if !found {
				continue
			}
			row("  "+resource, func(node engine.NodeScores) string {
				parts := strings.Split(node.Plugins[name].Why, "; ")
				text, _, _ := strings.Cut(parts[min(i, len(parts)-1)], ":")
				return strings.TrimPrefix(text, resource+" ")
			})
		}
	}
	t.Print(out, o)
	printEqual(out, equal)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// maxNames is the number of names that one line lists.
const maxNames = 5

// table returns the table of some of the feasible nodes.
func (e *explanation) table(shown, feasible []engine.NodeScores) scoreTable {
	t := scoreTable{nodes: shown, all: feasible}
	if e.Load == nil {
		return t
	}
	t.extraColumns = []string{"CPU %", "memory %"}
	t.extraCells = func(name string) []string {
		i := slices.IndexFunc(e.Nodes, func(n explainedNode) bool { return n.Name == name })
		return []string{formatUtilization(e.Nodes[i].CPU, e.Load.isCurrent), formatUtilization(e.Nodes[i].Memory, e.Load.isCurrent)}
	}
	return t
}

func formatUtilization(u *input.Utilization, isCurrent bool) string {
	switch {
	case u == nil:
		return "-"
	case isCurrent:
		return fmt.Sprintf("%.0f", 100*u.Mean)
	}
	return fmt.Sprintf("%.0f ± %.0f", 100*u.Mean, 100*u.StdDev)
}
