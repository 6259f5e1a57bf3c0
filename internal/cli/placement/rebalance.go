package placement

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// rebalanceOptions are the flags of plimsoll placement rebalance.
type rebalanceOptions struct {
	decideOptions

	hub base.Cluster
}

func newRebalanceCommand() *cobra.Command {
	var o rebalanceOptions
	cmd := &cobra.Command{
		Use:   "rebalance [-f FILE_OR_DIR... | --recording FILE]",
		Short: "Show which decisions would change if made again",
		Long: `Show which decisions would change if placements were decided again, each as if it had no
decisions yet and its pods were not running, and all others kept theirs. The gain is the
difference of the totals of the clusters. Nothing moves by itself, and this command
changes nothing either: to move a workload, exclude the cluster in its placement.`,
		Example: `  plimsoll placement rebalance
  plimsoll placement rebalance -f hub/ -o json`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.objects.AddFlags(cmd, "")
	cmd.Flags().StringVar(&o.now, "now", "", "time of the decisions, such as 2026-01-31T12:00:00Z (default the time of the recording, "+
		"or the current time)")
	o.hub.AddFlags(cmd, "hub", 30*time.Second)
	input.ExcludeLive(cmd, "filename", "recording")
	o.output.AddFlag(cmd)
	return cmd
}

// maxMoved is the maximum number of clusters in a cell of the table.
const maxMoved = 3

// moveResult is a change in JSON and YAML.
type moveResult struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	fleet.Move
}

func (o *rebalanceOptions) run(cmd *cobra.Command) error {
	if err := cmp.Or(base.Requires(cmd, "now", "filename", "recording"), o.objects.ValidateExclusive()); err != nil {
		return err
	}
	objects, now, err := o.read(cmd)
	if err != nil {
		return err
	}
	result := struct {
		Moves []moveResult `json:"moves"`
	}{Moves: []moveResult{}}
	state, selected, decided := objects.State(), objects.Selected(), 0
	for _, key := range state.Placements() {
		if r, ok := state.PreviewFromScratch(key, now); ok {
			decided += len(selected[key])
			if move := r.MoveTo(selected[key]); move != nil {
				result.Moves = append(result.Moves, moveResult{key.Namespace, key.Name, *move})
			}
		}
	}
	return o.output.Print(cmd.OutOrStdout(), result, func(out io.Writer) {
		switch {
		case decided == 0:
			fmt.Fprintln(out, "no placement is decided yet")
			return
		case len(result.Moves) == 0:
			fmt.Fprintln(out, "no decision would change")
			return
		}
		t := base.NewTable("placement", "from", "to", "gain")
		for _, m := range result.Moves {
			t.AddRow(
				types.NamespacedName{Namespace: m.Namespace, Name: m.Name},
				format.Abbreviate(m.From, maxMoved, ", "),
				format.Abbreviate(m.To, maxMoved, ", "),
				m.Gain,
			)
		}
		t.Print(out, &o.output)
	})
}

// read returns the objects of manifests, of a recording or of the hub, and the time of the decisions.
func (o *rebalanceOptions) read(cmd *cobra.Command) (*fleet.Objects, time.Time, error) {
	if o.objects.Given() {
		return o.readHub(cmd.InOrStdin(), base.Warnings(cmd.ErrOrStderr()))
	}
	objects, err := readLiveHub(cmd.Context(), &o.hub, base.Warnings(cmd.ErrOrStderr()))
	return objects, time.Now(), err
}
