package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
)

func newPlacementCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "placement",
		Short: "Which clusters should this workload go to?",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPlacementDecideCommand(), newPlacementExplainCommand())
	return cmd
}

// decideOptions are the flags of plimsoll placement decide.
type decideOptions struct {
	input

	now    string
	output output
}

func newPlacementDecideCommand() *cobra.Command {
	var o decideOptions
	cmd := &cobra.Command{
		Use:   "decide (-f FILE_OR_DIR... | --snapshot FILE)",
		Short: "Decide placements over the clusters in manifests",
		Long: `Decide placements over the clusters in manifests, as the placement controller would
next: ManagedClusters, ManagedClusterSets, ManagedClusterSetBindings, Placements,
AddOnPlacementScores, and PlacementDecisions for what was decided before. Each
placement is decided as if the others stayed as they are. Nothing is changed.

The exit code is 0 also where a placement cannot be satisfied or makes no sense; the
conditions say so.`,
		Example: `  plimsoll placement decide -f examples/placement/prioritizers

  # What would a changed placement choose on this hub?
  kubectl get managedclusters,managedclustersets,managedclustersetbindings,placementdecisions,addonplacementscores -A -o yaml > hub.yaml
  plimsoll placement decide -f hub.yaml -f placement.yaml -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.add(cmd, "")
	cmd.Flags().StringVar(&o.now, "now", "", "time to decide at, as 2026-01-31T12:00:00Z: tolerations and scores end (default that of the snapshot, or the present)")
	o.output.add(cmd)
	return cmd
}

// placementsResult is the answer in JSON and YAML.
type placementsResult struct {
	Placements []placementResult `json:"placements"`
}

// placementResult is what comes of one placement.
type placementResult struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	Decisions  []string          `json:"decisions"`
	Groups     []groupResult     `json:"groups"`
	Clusters   []clusterResult   `json:"clusters"`
	Conditions []conditionResult `json:"conditions"`
	// RequeueAt is when the answer may be another though nothing has changed.
	RequeueAt *time.Time `json:"requeueAt"`
}

type groupResult struct {
	Name     string   `json:"name"`
	Index    int      `json:"index"`
	Clusters []string `json:"clusters"`
}

type clusterResult struct {
	Name     string                       `json:"name"`
	Feasible bool                         `json:"feasible"`
	Reason   string                       `json:"reason"`
	Total    int64                        `json:"total"`
	Scores   map[string]prioritizerResult `json:"scores"`
}

type prioritizerResult struct {
	Score  int64 `json:"score"`
	Weight int32 `json:"weight"`
}

type conditionResult struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (o *decideOptions) run(in io.Reader, out, warnings io.Writer) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if err := o.validate("placements and clusters"); err != nil {
		return err
	}
	hub, now, err := o.hub(in)
	if err != nil {
		return err
	}
	for _, warning := range hub.Warnings {
		fmt.Fprintln(warnings, "plimsoll: warning:", warning)
	}
	state := stateOf(hub)
	var verdicts []namedVerdict
	for _, key := range state.Placements() {
		if verdict, ok := state.Preview(key, now); ok {
			verdicts = append(verdicts, namedVerdict{key, verdict, chosenBefore(hub, key)})
		}
	}
	return printVerdicts(out, &o.output, verdicts)
}

// hub returns what there is to decide over, and at which time.
func (o *decideOptions) hub(in io.Reader) (*manifest.Hub, time.Time, error) {
	now := time.Now()
	var read *snapshot.Snapshot
	if o.snapshot != "" {
		var err error
		if read, err = snapshot.Open(o.snapshot); err != nil {
			return nil, now, fmt.Errorf("--snapshot: %w", err)
		}
		now = read.About.Time
	}
	if o.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, o.now); err != nil {
			return nil, now, fmt.Errorf("--now: found %q, want a time such as 2026-01-31T12:00:00Z", o.now)
		}
	}
	if read == nil {
		hub, err := manifest.ReadHub(o.files, in)
		return hub, now, err
	}
	hub, err := read.Hub()
	if err != nil {
		err = fmt.Errorf("--snapshot: %s: %w", o.snapshot, err)
	}
	return hub, now, err
}

// stateOf returns what a hub's manifests say.
func stateOf(hub *manifest.Hub) *fleet.State {
	state := fleet.NewState()
	for _, object := range hub.Sets {
		state.SetSet(object)
	}
	for _, object := range hub.Bindings {
		state.SetBinding(object)
	}
	for _, object := range hub.Scores {
		state.SetScores(object)
	}
	for _, object := range hub.Clusters {
		state.SetCluster(object)
	}
	for _, object := range hub.Placements {
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		state.SetPlacement(object)
		state.Resume(key, chosenBefore(hub, key), 0)
	}
	// Others' decisions count where clusters are balanced.
	others := map[types.NamespacedName]bool{}
	for _, decision := range hub.Decisions {
		others[placementOf(decision)] = true
	}
	for _, object := range hub.Placements {
		delete(others, types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
	}
	for key := range others {
		state.SetForeign(key, chosenBefore(hub, key))
	}
	return state
}

// placementOf returns the placement that a decision is of.
func placementOf(decision *clusterv1beta1.PlacementDecision) types.NamespacedName {
	return types.NamespacedName{Namespace: decision.Namespace, Name: decision.Labels[clusterv1beta1.PlacementLabel]}
}

// chosenBefore returns the clusters that the decisions of a placement name.
func chosenBefore(hub *manifest.Hub, key types.NamespacedName) (names []string) {
	for _, decision := range hub.Decisions {
		if placementOf(decision) == key {
			for _, d := range decision.Status.Decisions {
				names = append(names, d.ClusterName)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// namedVerdict is a verdict, whose, and what it had before.
type namedVerdict struct {
	key types.NamespacedName
	*fleet.Verdict
	before []string
}

// printVerdicts prints all of them.
func printVerdicts(out io.Writer, output *output, verdicts []namedVerdict) error {
	result := placementsResult{Placements: []placementResult{}}
	for _, verdict := range verdicts {
		result.Placements = append(result.Placements, placementResultOf(verdict))
	}
	return output.print(out, result, func(out io.Writer) {
		for i, verdict := range verdicts {
			if i > 0 {
				fmt.Fprintln(out)
			}
			printVerdict(out, verdict)
		}
	})
}

func placementResultOf(verdict namedVerdict) placementResult {
	result := placementResult{
		Namespace: verdict.key.Namespace, Name: verdict.key.Name,
		Decisions: []string{}, Groups: []groupResult{}, Clusters: []clusterResult{}, Conditions: []conditionResult{},
	}
	if verdict.Keep {
		result.Decisions = append(result.Decisions, verdict.before...)
	} else {
		for i, group := range verdict.Groups {
			g := groupResult{Name: group.Name, Index: i, Clusters: []string{}}
			for _, choice := range group.Clusters {
				g.Clusters = append(g.Clusters, choice.Name)
			}
			result.Decisions = append(result.Decisions, g.Clusters...)
			result.Groups = append(result.Groups, g)
		}
	}
	for _, standing := range verdict.Standings() {
		c := clusterResult{Name: standing.Name, Feasible: standing.Feasible, Reason: standing.Reason, Total: standing.Total, Scores: map[string]prioritizerResult{}}
		for _, score := range standing.Scores {
			c.Scores[score.Name] = prioritizerResult{score.Score, score.Weight}
		}
		result.Clusters = append(result.Clusters, c)
	}
	for _, c := range verdict.Conditions {
		result.Conditions = append(result.Conditions, conditionResult{c.Type, string(c.Status), c.Reason, c.Message})
	}
	if !verdict.RequeueAt.IsZero() {
		at := verdict.RequeueAt.UTC()
		result.RequeueAt = &at
	}
	return result
}

// printVerdict prints what comes of a placement for people.
func printVerdict(out io.Writer, verdict namedVerdict) {
	if verdict.Decision != nil {
		printStandings(out, verdict)
	} else {
		fmt.Fprintf(out, "%s\n", verdict.key)
	}
	switch {
	case verdict.Keep && len(verdict.before) > 0:
		fmt.Fprintf(out, "keeps %s\n", strings.Join(verdict.before, ", "))
	case !verdict.Keep && len(verdict.Groups) > 1:
		for i, group := range verdict.Groups {
			var names []string
			for _, choice := range group.Clusters {
				names = append(names, choice.Name)
			}
			fmt.Fprintf(out, "group %d %s: %s\n", i, group.Name, strings.Join(names, ", "))
		}
	}
	for _, c := range verdict.Conditions {
		fmt.Fprintf(out, "%s: %s (%s) %s\n", c.Type, strings.ToLower(string(c.Status)), c.Reason, c.Message)
	}
	if !verdict.RequeueAt.IsZero() {
		fmt.Fprintf(out, "the answer may change by itself at %s\n", verdict.RequeueAt.UTC().Format(time.RFC3339))
	}
}

// printStandings prints a row for each cluster, the best first.
func printStandings(out io.Writer, verdict namedVerdict) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignCenter}})
	header := table.Row{verdict.key.String(), "chosen"}
	names, weights := verdict.Policy.Prioritizers()
	for i, name := range names {
		// On several lines: with all prioritizers the table is wide enough.
		broken := strings.NewReplacer("Resource", "Resource\n", "/", "/\n").Replace(name)
		header = append(header, fmt.Sprintf("%s\nx %d", broken, weights[i]))
	}
	t.AppendHeader(append(header, "total", ""))
	for _, standing := range verdict.Standings() {
		chosen := ""
		if standing.Chosen {
			chosen = "yes"
		}
		row := table.Row{standing.Name, chosen}
		for _, score := range standing.Scores {
			cell := strconv.FormatInt(score.Score, 10)
			if !score.HasData {
				cell += " (no data)"
			}
			row = append(row, cell)
		}
		if standing.Feasible {
			row = append(row, standing.Total)
		} else {
			row = append(row, make(table.Row, len(names)+1)...)
		}
		t.AppendRow(append(row, standing.Reason))
	}
	t.Render()
}
