package plimsoll

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// showsGenerated reports whether a command is a complete simulation of a generated cluster, which shows an effect. A shard does not
// show an effect, as it has only a part of the seeds.
func showsGenerated(command doccheck.Command) bool {
	return !command.Inline && slices.Contains([]string{"simulate", "compare"}, command.Words[1]) &&
		slices.Contains(command.Words, "--generate") && !slices.Contains(command.Words, "--shard")
}

// TestExamplesShowEffects runs the documented simulations of generated clusters whose output is not shown. A comparison of
// profiles must have a clear difference of the overload, or of the cost if all have the same slack, a comparison of slack a clear
// difference of the pending time, and a simulation of one profile some overload or a scale-up.
func TestExamplesShowEffects(t *testing.T) {
	project, err := filepath.Abs("../../..")
	must.Succeed(t, err)
	commands, err := doccheck.CommandsOf(project, "plimsoll")
	must.Succeed(t, err)
	done := map[string]bool{}
	for _, command := range commands {
		key := strings.Join(command.Words, " ")
		if !showsGenerated(command) || command.Shown || done[key] {
			continue
		}
		done[key] = true
		t.Run(key, func(t *testing.T) {
			r := simulated(t, command.Arguments())
			if !showsEffect(r) {
				t.Errorf("%s shows no effect", command)
			}
			if s := r.Recommendation; s != nil && len(r.Seeds) > 1 && slices.Contains(r.Profiles, "predicted") && s.Profile != "predicted" {
				t.Errorf("%s: %s", command, s.Headline)
			}
			if len(r.Notes) > 0 && r.Settings.Autoscaler == nil {
				t.Errorf("%s: %s", command, r.Notes)
			}
		})
	}
	if len(done) < 6 {
		t.Errorf("found %d simulations of generated clusters, want at least 6", len(done))
	}
}

// simulated runs a command without writing its report, and returns its result.
func simulated(t *testing.T, args []string) *result.Result {
	t.Helper()
	t.Chdir(t.TempDir())
	cmd := newCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append(args, "-o", base.FormatJSON))
	must.Succeed(t, cmd.ExecuteContext(t.Context()))
	var r result.Result
	must.Succeed(t, json.Unmarshal(out.Bytes(), &r))
	return &r
}

// showsEffect reports whether a result shows the effect that its example documents.
func showsEffect(r *result.Result) bool {
	profiles := r.Scenario.Profiles
	if len(profiles) == 1 {
		run := profiles[0].Runs[0]
		return run.OverloadMinutes > 0 || run.Scaling != nil && run.Scaling.ScaleUps > 0
	}
	figure := "overloadMinutes"
	switch first := profiles[0].Slack; {
	case first != "" && profiles[1].Slack == first:
		figure = "cost"
	case first != "":
		figure = "pendingSecondsMean"
	}
	for i := range profiles[1:] {
		if d := profiles[i+1].Figures[figure].Difference; d.Interval != nil && d.Interval.ExcludesZero && d.Mean < 0 {
			return true
		}
	}
	return false
}
