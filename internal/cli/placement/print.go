package placement

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// outcome is the result of evaluating a placement.
type outcome struct {
	key types.NamespacedName
	*fleet.Result
	// before are the previous decisions.
	before []string
}

// placementsResult is the result in JSON and YAML.
type placementsResult struct {
	Placements []placementResult `json:"placements"`
}

// placementResult is the outcome of one placement.
type placementResult struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Decisions []string      `json:"decisions"`
	Groups    []groupResult `json:"groups"`
	// Clusters are the feasible clusters by rank, then all other clusters by name.
	Clusters   []fleet.ClusterRanking `json:"clusters"`
	Conditions []conditionResult      `json:"conditions"`
	// RequeueAt is when the outcome may change although no object changes.
	RequeueAt *time.Time `json:"requeueAt"`
}

type groupResult struct {
	Name     string   `json:"name"`
	Index    int      `json:"index"`
	Clusters []string `json:"clusters"`
}

type conditionResult struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// printOutcomes prints the outcomes of all placements.
func printOutcomes(out io.Writer, output *base.Output, outcomes []outcome) error {
	result := placementsResult{Placements: []placementResult{}}
	for i := range outcomes {
		result.Placements = append(result.Placements, outcomes[i].result())
	}
	return output.Print(out, result, func(out io.Writer) {
		for i := range outcomes {
			if i > 0 {
				fmt.Fprintln(out)
			}
			outcomes[i].print(out, output, &result.Placements[i])
		}
	})
}

// result returns the outcome for JSON and YAML.
func (o *outcome) result() placementResult {
	result := placementResult{
		Namespace: o.key.Namespace, Name: o.key.Name,
		Decisions: []string{}, Groups: []groupResult{}, Clusters: o.Ranking(), Conditions: []conditionResult{},
	}
	if o.KeepDecisions {
		result.Decisions = append(result.Decisions, o.before...)
	} else {
		for i, group := range o.Groups {
			g := groupResult{Name: group.Name, Index: i, Clusters: []string{}}
			for _, d := range group.Clusters {
				g.Clusters = append(g.Clusters, d.ClusterName)
			}
			result.Decisions = append(result.Decisions, g.Clusters...)
			result.Groups = append(result.Groups, g)
		}
	}
	for _, c := range o.Conditions {
		result.Conditions = append(result.Conditions, conditionResult{c.Type, string(c.Status), c.Reason, c.Message})
	}
	if !o.RequeueAt.IsZero() {
		at := o.RequeueAt.UTC()
		result.RequeueAt = &at
	}
	return result
}

// print prints the outcome, whose result is given, as text.
func (o *outcome) print(out io.Writer, output *base.Output, result *placementResult) {
	fmt.Fprintln(out, base.Escape(o.key.String()))
	if o.Decision != nil {
		o.printClusters(out, output, result.Clusters)
	}
	switch {
	case o.KeepDecisions && len(o.before) > 0:
		fmt.Fprintf(out, "keeps %s\n", base.Escape(strings.Join(o.before, ", ")))
	case len(result.Groups) > 1:
		for _, group := range result.Groups {
			fmt.Fprintf(out, "group %d %s: %s\n", group.Index, base.Escape(group.Name), base.Escape(strings.Join(group.Clusters, ", ")))
		}
	}
	for _, c := range result.Conditions {
		fmt.Fprintf(out, "%s: %s (%s) %s\n", c.Type, strings.ToLower(c.Status), c.Reason, base.Escape(c.Message))
	}
	if result.RequeueAt != nil {
		fmt.Fprintf(out, "to be evaluated again at %s\n", result.RequeueAt.Format(time.RFC3339))
	}
}

// printClusters prints a row for each feasible cluster, the best first, and the reason why each other cluster is infeasible.
func (o *outcome) printClusters(out io.Writer, output *base.Output, clusters []fleet.ClusterRanking) {
	t := base.NewTable("cluster", "chosen", "total", "replicas") // a column without values is not printed
	names, weights := o.Policy.Prioritizers()
	add := func(columns ...string) { t.Add(columns...) }
	if len(names) > maxScoreColumns {
		add = t.Wide
	}
	for i, name := range names {
		add(fmt.Sprintf("%s x%d", strings.TrimPrefix(name, "Resource"), weights[i]))
	}
	var refused []string
	for _, cluster := range clusters {
		if !cluster.Feasible {
			refused = append(refused, cluster.Name+": "+cluster.Reason)
			continue
		}
		row := []any{cluster.Name, "", cluster.Total, ""}
		if cluster.Chosen {
			row[1] = "yes"
		}
		if cluster.Replicas != nil {
			row[3] = *cluster.Replicas
		}
		for _, name := range names {
			score := cluster.Scores[name]
			cell := strconv.FormatInt(score.Score, 10)
			if !score.HasData {
				cell = "no data"
			}
			row = append(row, cell)
		}
		t.AddRow(row...)
	}
	t.Print(out, output)
	for _, line := range refused {
		fmt.Fprintln(out, base.Escape(line))
	}
}

// maxScoreColumns is the number of prioritizers whose scores fit a terminal. If there are more, scores are printed only with -o wide.
const maxScoreColumns = 3
