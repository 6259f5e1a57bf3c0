package score

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// nodeOptions are the flags of plimsoll explain node.
type nodeOptions struct {
	objects input.Objects
	cluster kube.Access
	output  base.Output
}

func newExplainNodeCommand() *cobra.Command {
	var o nodeOptions
	cmd := &cobra.Command{
		Use:     "node [NAME...] [-f FILE_OR_DIR... | --recording FILE]",
		Aliases: base.Node.Others,
		Short:   "Explain what keeps nodes, and which can go",
		Long: `Explain what keeps nodes in a cluster, and which of them can go: budgets that allow no
disruption, annotations, pods without a controller, with local storage or of the system,
and pods that fit on no other node, by the filters of kube-scheduler.

Nodes with the label karpenter.sh/nodepool are explained by the rules of Karpenter, other
nodes by the rules of Cluster Autoscaler with its defaults. Without a name, all nodes are a
table: nodes that can go together, since their pods fit on the remaining nodes, and what
keeps the others. With names, each node is explained as if it alone were to go: with all
that would have to change, and for each pod that fits nowhere else the reasons of the
filters. Nothing is changed.`,
		Example: `  # Which nodes of the current cluster can go, and what keeps the others?
  plimsoll explain node

  # What would have to change so that a node can go?
  plimsoll explain node n2 -f examples/nodes/cluster.yaml

  # Read a recording at a time, and print all moves of pods as JSON.
  plimsoll explain node --recording week.ndjson.gz --at 2000-01-02T23:55:00Z -o json`,
		Args: cobra.ArbitraryArgs,
		RunE: o.run,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if !o.objects.Given() {
				return base.CompleteNames(&o.cluster, v1.SchemeGroupVersion.WithResource("nodes"), nil)(cmd, args, text)
			}
			return completeFrom(cmd, &o.objects, nodeNames)
		},
	}
	o.objects.AddFlags(cmd, " of nodes, pods and budgets")
	o.objects.AddAtFlag(cmd)
	o.cluster.AddFlags(cmd, "cluster")
	input.ExcludeLive(cmd, "filename", "recording")
	o.output.AddFlag(cmd)
	return cmd
}

// nodeNames returns the names of the nodes.
func nodeNames(objects *manifest.Objects) (names []string) {
	for _, node := range objects.Nodes {
		names = append(names, node.Name)
	}
	return names
}

func (o *nodeOptions) run(cmd *cobra.Command, args []string) error {
	warn := base.Warnings(cmd.ErrOrStderr())
	if err := o.objects.ValidateExclusive(); err != nil {
		return err
	}
	for i, arg := range args {
		key, err := base.Node.ParseName(arg, "")
		if err != nil {
			return err
		}
		if key.Namespace == "" {
			args[i] = key.Name
		}
	}
	var state *engine.State
	var err error
	if o.objects.Given() {
		state, err = o.objects.Read(cmd.Context(), cmd.InOrStdin(), input.Instant{}, warn)
	} else {
		state, err = input.ReadObjects(cmd, &o.cluster, warn)
	}
	if err != nil {
		return err
	}
	profile, err := (&input.Scheduler{}).Read(defaultProfile, warn)
	if err != nil {
		return err
	}
	warnIncomplete(state, &profile, warn)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	e, err := state.Engine(ctx, profile)
	if err != nil {
		return err
	}
	explained, err := scaling.ExplainNodes(ctx, e, state.Objects, args)
	if err != nil {
		return base.Failure(err)
	}
	for _, warning := range explained.Warnings {
		warn(warning)
	}
	return o.output.Print(cmd.OutOrStdout(), explained, func(out io.Writer) {
		fmt.Fprintln(out, base.Wrap("", base.Escape(explained.Rules), base.DefaultWidth))
		if len(args) == 0 {
			o.printTable(out, explained.Nodes)
			fmt.Fprintln(out, base.Wrap("", base.Escape(explained.Summary), base.DefaultWidth))
			return
		}
		for _, node := range explained.Nodes {
			printNode(out, node)
		}
	})
}

// maxNodeName is the length to which names of nodes are cut in the table unless it is wide.
const maxNodeName = 44

// printTable prints a row for each node, with what keeps it.
func (o *nodeOptions) printTable(out io.Writer, nodes []*scaling.ExplainedNode) {
	t := base.NewTable("node", "state", "used", "pods", "result")
	t.Wide("autoscaler")
	longest, isWide := 0, o.output.Format == base.FormatWide
	for _, node := range nodes {
		longest = max(longest, min(len(node.Name), maxNodeName)+len(node.State))
	}
	for _, node := range nodes {
		name, result := node.Name, node.Text()
		if !isWide {
			name, result = format.Shorten(name, maxNodeName), format.Shorten(result, max(base.DefaultWidth-longest-16, 10))
		}
		t.AddRow(name, node.State, fmt.Sprintf("%.0f %%", 100*node.Utilization), node.Pods, result, node.Autoscaler)
	}
	t.Print(out, &o.output)
}

// printNode prints what keeps a node and what would free it, and where its pods fit then.
func printNode(out io.Writer, node *scaling.ExplainedNode) {
	line := func(head, text string, values ...any) {
		fmt.Fprintln(out, base.Wrap(head, base.Escape(fmt.Sprintf(text, values...)), base.DefaultWidth))
	}
	line("", "%s: %s (%s)", node.Name, strings.TrimSuffix(string(node.Result)+", "+node.State, ", "), node.Autoscaler)
	line("  ", "pods request %.0f %%, %s to move", 100*node.Utilization, format.Of(node.Pods, "pod"))
	var changes, moves []string
	for _, c := range node.Constraints {
		keeps := ""
		if len(c.Pods) > 0 && c.Pods[0] != c.Object {
			keeps = " keeps " + format.Abbreviate(c.Pods, maxNames, ", ")
		}
		line("  ", "%s %s%s: %s", c.Kind, c.Object, keeps, c.Text)
		if c.Change != "" && !slices.Contains(changes, c.Change) {
			changes = append(changes, c.Change)
		}
	}
	for _, move := range node.Moves {
		moves = append(moves, move.Pod+" on "+move.Node)
	}
	if len(changes) > 0 {
		line("  ", "can go after: %s", strings.Join(changes, "; "))
	}
	if len(moves) > 0 {
		line("  ", "its pods fit: %s", format.Abbreviate(moves, maxNames, ", "))
	}
}
