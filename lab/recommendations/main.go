// Command recommendations counts how often what plimsoll recommend confirms holds later. For each of five families of generated clusters
// and each seed, it records two days, finds a recommendation on the first 32 hours, and simulates it on the last 16, which the
// recommendation has not seen. It prints a table in Markdown. With the name of a file, it writes the recording with which the time of
// plimsoll recommend is measured: a week of 200 nodes and 40,000 pods.
//
//	recommendations [SEEDS]
//	recommendations week.ndjson.gz
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// families are the clusters: name, what is generated, and usage.
var families = [][3]string{
	{"requests of four times the use", "nodes=6,shapes=8x32,pods=160,fill=0.7,churn=172800,life=14400", "diurnal:mean=0.25"},
	{"requests near the use", "nodes=6,shapes=8x32,pods=160,fill=0.85,churn=172800,life=14400", "beta:mean=0.65"},
	{"bursts of use", "nodes=6,shapes=8x32,pods=160,fill=0.8,churn=172800,life=14400", "bursts:mean=0.4"},
	{"pods without requests", "nodes=6,shapes=8x32,pods=160,fill=0.7,best-effort=0.2,churn=172800,life=14400", "bursts:mean=0.4"},
	{"short pods", "nodes=6,shapes=8x32,pods=160,fill=0.6,churn=172800,life=1800", "diurnal:mean=0.4"},
}

// week is the cluster of the measurement of time: 4,000 pods at once, 40,000 in all.
var week = generate.Source{
	Generate: "nodes=200,shapes=16x64,pods=4000,fill=0.7,churn=604800,life=67200", Usage: "diurnal:mean=0.35",
}

func main() {
	if err := runArgument(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "recommendations:", err)
		os.Exit(1)
	}
}

// runArgument writes the week to a file, or counts over a number of seeds.
func runArgument(args []string) error {
	seeds := 4
	if len(args) > 0 {
		if strings.HasSuffix(args[0], recording.Extension) {
			return generate.Record(args[0], week, 1)
		}
		seeds, _ = strconv.Atoi(args[0])
	}
	return run(context.Background(), seeds)
}

func run(ctx context.Context, seeds int) error {
	if seeds < 1 {
		return errors.New("usage: recommendations [SEEDS]")
	}
	fmt.Println("| family | changed | not confirmed, and said so | confirmed | of these, later in vain | cost, later, of these |")
	fmt.Println("|---|---:|---:|---:|---:|---:|")
	for _, family := range families {
		var changed, unconfirmed, confirmed, failed int
		var before, after float64
		for seed := range uint64(seeds) {
			t, err := try(ctx, family[1], family[2], seed+1)
			if err != nil {
				return fmt.Errorf("%s: %w", family[0], err)
			}
			fmt.Fprintf(os.Stderr, "%s, seed %d: %s\nlater: %+v\n", family[0], seed+1, t.sentence, t)
			switch {
			case !t.isChanged:
			case !t.isConfirmed:
				changed++
				unconfirmed++
			default:
				changed++
				confirmed++
				before, after = before+t.inForce.cost, after+t.recommended.cost
				if !t.recommended.isWithin(&t.inForce) {
					failed++
				}
			}
		}
		cost := "-"
		if before > 0 {
			cost = fmt.Sprintf("%+.0f %%", 100*(after/before-1))
		}
		fmt.Printf("| %s | %d of %d | %d | %d | %d | %s |\n", family[0], changed, seeds, unconfirmed, confirmed, failed, cost)
	}
	return nil
}

// trial is a recommendation, and the outcome in force and as recommended in the hours after it.
type trial struct {
	sentence               string
	isChanged, isConfirmed bool
	inForce, recommended   outcome
}

type outcome struct {
	cost, overload        float64
	killed, unschedulable int
	wait                  time.Duration // of the percentage of the pods of the goal
}

// isWithin reports whether the goals are reached, with the tolerance of the recommendation of 5 %.
func (o *outcome) isWithin(base *outcome) bool {
	return o.overload <= 1.05*base.overload && float64(o.killed) <= 1.05*float64(base.killed) && o.unschedulable <= base.unschedulable &&
		o.wait <= max(base.wait, recommend.DefaultWait)
}

func try(ctx context.Context, cluster, use string, seed uint64) (t trial, err error) {
	folder, err := os.MkdirTemp("", "recommendations-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "generated.ndjson.gz")
	if err := generate.Record(file, generate.Source{Generate: cluster, Usage: use}, seed); err != nil {
		return t, err
	}
	spec, err := scaling.Parse([]string{"shape=8x32,boot=120,cost=0.40"})
	if err != nil {
		return t, err
	}
	spec.Groups[0].AdoptOthers = true
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "recommended"}}
	policy.Spec.Default()
	policy.Spec.Mirrors.NamespaceSelector = nil
	o := recommend.Options{
		Source:     recording.Source{Recording: file + ",to=32h", NoSpare: true},
		Policy:     policy,
		Autoscaler: &spec,
		Change: recommend.Changes{
			Profile:  true,
			Requests: true,
			Slack:    true,
		},
		Run:     compare.InProcess,
		Report:  func(string) {},
		Metrics: replay.DefaultMetrics,
	}
	for _, name := range []string{"default", "most-allocated", "predicted", "packed"} {
		profile, err := engine.ReadConfig(name)
		if err != nil {
			return t, err
		}
		o.Profiles = append(o.Profiles, profile)
	}
	o.Current = o.Profiles[0]
	r, err := recommend.Find(ctx, o)
	if err != nil {
		return t, err
	}
	t.sentence, t.isConfirmed = r.Verdict.Sentence, r.Confirmed
	t.isChanged = r.Profile != o.Current.Name || len(r.Requests) > 0 || r.Policy != nil
	const settle = 3600
	job := compare.Job{
		Source: generate.Source{
			Source: recording.Source{Recording: file + ",from=32h", Reschedule: true, Pack: 1, NoSpare: true},
		},
		Profile: o.Current, Metrics: o.Metrics, Settle: settle, Autoscaler: &scaling.Config{Spec: r.Autoscaler},
	}
	changed := job
	if changed.Profile, err = engine.ReadConfig(r.Profile); err != nil {
		return t, err
	}
	changed.Source.Requests = r.Requests
	changed.Autoscaler = &scaling.Config{Spec: r.Autoscaler, Slack: r.Policy}
	runs, err := compare.InProcess(ctx, []compare.Job{job, changed})
	if err != nil {
		return t, err
	}
	t.inForce, t.recommended = outcomeOf(runs[0], r.WaitPercent), outcomeOf(runs[1], r.WaitPercent)
	return t, nil
}

func outcomeOf(run *result.Run, percent float64) outcome {
	return outcome{run.Scaling.Cost, run.OverloadMinutes, run.Victims, run.Unschedulable, run.Waits.Percentile(percent)}
}
