// Command policies compares kinds of slack over the arrivals of a recording: the cheapest rate and constant minimum with which 99 % of the
// pods wait at most 5 and 60 s, and the cheapest policies. They are found on the first two thirds with the fast model of plimsoll
// recommend, and simulated on the last third with the code of kube-scheduler. It prints a table in Markdown.
//
//	policies RECORDING AUTOSCALER
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/slackpolicy"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		os.Exit(1)
	}
}

const (
	parts   = 15 // the last third is simulated
	percent = 99
	settle  = 2 * 3600 // seconds of a part that do not count
)

var waits = []time.Duration{5 * time.Second, time.Minute}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	if len(arguments) != 2 {
		return errors.New("usage: policies RECORDING AUTOSCALER")
	}
	spec, err := scaling.Parse(arguments[1:])
	if err != nil {
		return err
	}
	spec.Groups[0].AdoptOthers = true
	f, err := newFit(arguments[0], &spec)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| p99 of waits to reach | slack | policy | p99 reached | cost a day | cost, relative to none | in parts |")
	fmt.Fprintln(out, "|---|---|---|---:|---:|---:|---|")
	none, err := simulate(ctx, arguments[0], &spec, &slackpolicy.Candidate{})
	if err != nil {
		return err
	}
	printRow(out, none, none, "-", "none", "-")
	for _, wait := range waits {
		found, err := f.find(ctx, wait)
		if err != nil {
			return err
		}
		for i, kind := range kinds {
			c := found[i]
			if c == nil {
				fmt.Fprintf(out, "| %s | %s | none reaches it | | | | |\n", wait, kind)
				continue
			}
			fmt.Fprintf(os.Stderr, "%s %s: %s, cost when fitted %.0f, p99 %s\n", wait, kind, c.Name, c.Cost, c.Waits.Percentile(percent))
			runs, err := simulate(ctx, arguments[0], &spec, c)
			if err != nil {
				return err
			}
			printRow(out, runs, none, wait.String(), kind, c.Name)
		}
	}
	return nil
}

// fit has the first two thirds of a recording for the fast model.
type fit struct {
	history *slackpolicy.History
	node    slackpolicy.NodeType
}

func newFit(file string, spec *scaling.Spec) (*fit, error) {
	_, from, to, err := recording.OpenSpan(file)
	if err != nil {
		return nil, err
	}
	if part := (to - from) / parts; part < 2*settle {
		return nil, fmt.Errorf("%s has %d s: must have at least %d, so that half of each part counts", file, to-from, 2*settle*parts)
	}
	source := recording.Source{Recording: recording.WithSpan(file, from, from+(to-from)/parts/60*60*(parts/3*2)), NoSpare: true}
	in, err := source.Input(1, recording.Limits{})
	if err != nil {
		return nil, err
	}
	f := &fit{}
	if f.node, err = spec.NodeType(&in); err != nil {
		return nil, err
	}
	// The nodes of the recording are replaced by those that the pods need.
	if f.history, _, err = spec.History(&in, 0); err != nil {
		return nil, err
	}
	f.history.Nodes = nil
	arrivals := int64(0)
	for i := range f.history.Pods {
		p := &f.history.Pods[i]
		if p.Node = 0; p.Arrival >= 0 {
			arrivals++
		}
	}
	fmt.Fprintf(os.Stderr, "%d pods in the first two thirds, %d arrive\n", len(f.history.Pods), arrivals)
	return f, nil
}

var kinds = []string{"best rate", "best minimum", "best of all"}

// find returns the cheapest policy of each kind that reaches a wait, nil if none does.
func (f *fit) find(ctx context.Context, wait time.Duration) ([]*slackpolicy.Candidate, error) {
	goal := slackpolicy.Goal{Percent: percent, Wait: wait, Policy: &v1alpha1.ResourceSlack{}, MinDays: 2}
	goal.Policy.Name = "default"
	goal.Policy.Spec.Default()
	r, err := slackpolicy.Search(ctx, f.history, f.node, goal)
	if err != nil {
		return nil, err
	}
	found := make([]*slackpolicy.Candidate, len(kinds))
	for i := range r.Candidates {
		c := &r.Candidates[i]
		for kind, matches := range []bool{
			strings.HasPrefix(c.Name, "rate"), strings.HasPrefix(c.Name, "minimum"), true,
		} {
			if matches && found[kind] == nil && c.Waits.Percentile(percent) <= wait {
				found[kind] = c
			}
		}
	}
	return found, nil
}

// simulate runs a policy on each part of the last third.
func simulate(ctx context.Context, file string, spec *scaling.Spec, c *slackpolicy.Candidate) ([]*result.Run, error) {
	profile, err := engine.ReadConfig("default")
	if err != nil {
		return nil, err
	}
	use, err := recording.ParseUsage("constant")
	if err != nil {
		return nil, err
	}
	var jobs []compare.Job
	for part := uint64(parts / 3 * 2); part < parts; part++ {
		jobs = append(jobs, compare.Job{
			Source:  recording.Source{Recording: file, Reschedule: true, Pack: 2, Parts: parts, NoSpare: true},
			Profile: profile, Usage: use, Metrics: replay.DefaultMetrics, Seed: part, Settle: settle,
			Autoscaler: &scaling.Config{Spec: *spec, Slack: c.Policy},
		})
	}
	return compare.InProcess(ctx, jobs)
}

// printRow prints a row.
func printRow(out io.Writer, runs, none []*result.Run, wait, kind, policy string) {
	reached, seconds := result.Waits{}, int64(0)
	var cost, before float64
	var relative []string
	for i, r := range runs {
		reached.Add(r.Waits)
		cost, before, seconds = cost+r.Scaling.Cost, before+none[i].Scaling.Cost, seconds+r.Seconds-settle
		relative = append(relative, fmt.Sprintf("%.2f", r.Scaling.Cost/none[i].Scaling.Cost))
	}
	slices.Sort(relative)
	fmt.Fprintf(out, "| %s | %s | %s | %s | %.0f | %.3f | %s |\n", wait, kind, policy, reached.Percentile(percent),
		cost/float64(seconds)*86400, cost/before, strings.Join([]string{relative[0], relative[len(relative)-1]}, " to "))
}
