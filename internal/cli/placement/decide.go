// Package placement has the commands that decide placements and explain decisions.
package placement

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// NewCommand returns the command plimsoll placement.
func NewCommand() *cobra.Command {
	return base.NewGroup("placement", "Decide and explain placements, and show where a workload fits",
		newDecideCommand(), newExplainCommand(), newFitCommand())
}

// decideOptions are the flags of plimsoll placement decide.
type decideOptions struct {
	objects input.Objects
	now     string
	output  base.Output
}

func newDecideCommand() *cobra.Command {
	var o decideOptions
	cmd := &cobra.Command{
		Use:   "decide (-f FILE_OR_DIR... | --recording FILE)",
		Short: "Decide placements over the clusters in manifests",
		Long: `Decide placements over the clusters in manifests, as the placement controller would:
ManagedClusters, ManagedClusterSets, ManagedClusterSetBindings, Placements,
AddOnPlacementScores, ClusterCapacities, and the objects that workloads refer to;
PlacementDecisions are the previous decisions. Each placement is decided as if all
others kept their decisions, beside what is promised to the workloads of the placements
above it. The hub is not changed.

The exit code is 2 if the spec of a placement is invalid, and 0 if a placement cannot be
satisfied: its conditions are printed.`,
		Example: `  plimsoll placement decide -f examples/placement/prioritizers

  # Decide a changed placement over the clusters of this hub.
  kubectl get managedclusters,managedclustersets,managedclustersetbindings -A -o yaml > hub.yaml
  kubectl get placementdecisions,addonplacementscores -A -o yaml > decisions.yaml
  kubectl get clustercapacities -A -o yaml > capacities.yaml
  plimsoll placement decide -f hub.yaml -f decisions.yaml -f capacities.yaml -f placement.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.InOrStdin(), cmd.OutOrStdout(), base.Warnings(cmd.ErrOrStderr()))
		},
	}
	o.objects.AddFlags(cmd, "")
	input.AddArguments(cmd)
	cmd.Flags().StringVar(&o.now, "now", "", "time of the decision, such as 2026-01-31T12:00:00Z, for tolerations and scores "+
		"that expire (default the time of the recording, or the current time)")
	o.output.AddFlag(cmd)
	return cmd
}

func (o *decideOptions) run(in io.Reader, out io.Writer, warn func(string)) error {
	if err := o.objects.Validate("placements and clusters"); err != nil {
		return err
	}
	hub, now, err := o.readHub(in, warn)
	if err != nil {
		return err
	}
	state, selected := hub.State(), hub.Selected()
	var outcomes []outcome
	var misconfigured []string
	for _, key := range state.Placements() {
		if result, ok := state.Preview(key, now); ok {
			outcomes = append(outcomes, outcome{key, result, selected[key]})
			state.SetPromises(key, result.Promises)
			if result.IsMisconfigured() {
				misconfigured = append(misconfigured, key.String())
			}
		}
	}
	if err := printOutcomes(out, &o.output, outcomes); err != nil || len(misconfigured) == 0 {
		return err
	}
	return fmt.Errorf(
		"%s misconfigured: %s: see PlacementMisconfigured above",
		format.PartAre(len(misconfigured), len(outcomes), "placement"),
		format.Abbreviate(misconfigured, 3, ", "),
	)
}

// readHub returns the objects of the hub and the time of the decision.
func (o *decideOptions) readHub(in io.Reader, warn func(string)) (objects *fleet.Objects, now time.Time, err error) {
	var hub *manifest.Hub
	now = time.Now()
	if o.objects.Recording == "" {
		hub, err = manifest.ReadHub(o.objects.Files, in)
	} else {
		var read *recording.Recording
		if read, err = recording.OpenFlag(o.objects.Recording); err != nil {
			return nil, now, err
		}
		now = read.About.To
		if hub, err = read.Hub(true); err != nil {
			err = fmt.Errorf("--recording: %s: %w", o.objects.Recording, err)
		}
	}
	if err == nil {
		now, err = input.ParseTime("now", o.now, now)
	}
	if err == nil {
		err = o.objects.Warn(hub.Warnings, warn)
	}
	if err != nil {
		return nil, now, err
	}
	if len(hub.Capacities) == 0 && slices.ContainsFunc(hub.Placements, namesWorkload) {
		warn("the input has no ClusterCapacities: " + unknownFits)
	}
	if newest := newestObservation(hub.Capacities); o.now == "" && newest > 0 && now.Unix()-newest > 3600 {
		warn(
			"the newest ClusterCapacity is of " + time.Unix(newest, 0).UTC().Format(time.RFC3339) + ": --now sets the time of the decision",
		)
	}
	return &hub.Objects, now, nil
}

// newestObservation returns the Unix time of the latest observation, 0 if there is none.
func newestObservation(capacities []*fleet.ClusterCapacity) (newest int64) {
	for _, c := range capacities {
		if c.Summary != nil {
			newest = max(newest, c.Summary.ObservedAt)
		}
	}
	return newest
}

// unknownFits is the part of a warning about missing ClusterCapacities that states their effect.
const unknownFits = "how many replicas of workloads fit the clusters is unknown, which FitReplicas, FitWait, FitCost and requireFit " +
	"depend on"

// namesWorkload reports whether a placement names a workload.
func namesWorkload(p *v1beta1.Placement) bool {
	spec, _ := fleet.WorkloadOf(p)
	return spec != nil
}
