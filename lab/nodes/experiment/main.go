// Command experiment measures what the profiles do to pods that run: on a cluster with real kubelets, it creates the same pods in the same
// order with each profile, whose CPU use follows recorded usage, and measures the requests of a latency service on each node, and
// the throttling of nodes by the kernel.
//
//	experiment -usage FOLDER RESULTS
//
// RESULTS is a folder with a file for each run. Runs that have a file are not repeated, so that the experiment can be continued at any
// time, on a machine that is free for some minutes or for days. It needs root.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
)

// settings are the settings of all runs. They are part of each result.
type settings struct {
	Nodes int `json:"nodes"`
	// CPU of a node in millicores, Memory in MiB.
	CPU    int `json:"cpu"`
	Memory int `json:"memory"`
	// Pods is the number of pods beside the services.
	Pods int `json:"pods"`
	// Level is the demand of all pods as a fraction of the CPU of all nodes.
	Level float64 `json:"level"`
	// Compression is how many seconds of recorded usage pass in one second.
	Compression float64 `json:"compression"`
	// Every is the time between two pods, Settle the time from the last pod to the measurement, Measure its length.
	Every   time.Duration `json:"every"`
	Settle  time.Duration `json:"settle"`
	Measure time.Duration `json:"measure"`
}

// history says what the scheduler knows when a run begins.
type history string

const (
	// warm: the scheduler has seen all workloads in earlier runs.
	warm history = "warm"
	// cold: the scheduler has just started, without a history.
	cold history = "cold"
)

// plan is a list of runs.
type plan struct {
	history history
	seeds   int
	arms    []string
}

// historyRuns is the number of runs before the first one that is measured.
const historyRuns = 2

// plans are the runs of the published table.
var plans = []plan{
	{warm, 20, []string{defaultArm, predictedArm}},
	{cold, 8, []string{defaultArm, predictedArm}},
	{warm, 8, []string{"low-risk", "packed", craneArm}},
}

func main() {
	controlplane.RunIfChild()
	realnodes.RunIfChild()
	s := settings{}
	flags := flag.NewFlagSet("experiment", flag.ExitOnError)
	flags.IntVar(&s.Nodes, "nodes", 4, "number of nodes")
	flags.IntVar(&s.CPU, "cpu", 300, "millicores of each node")
	flags.IntVar(&s.Memory, "memory", 1024, "MiB of each node")
	flags.IntVar(&s.Pods, "pods", 36, "number of pods, an even number")
	flags.Float64Var(&s.Level, "level", 0.85, "demand as a fraction of the CPU of all nodes")
	flags.Float64Var(&s.Compression, "compression", 15, "seconds of recorded usage in one second")
	flags.DurationVar(&s.Every, "every", 600*time.Millisecond, "time between two pods")
	flags.DurationVar(&s.Settle, "settle", 10*time.Second, "time from the last pod to the measurement")
	flags.DurationVar(&s.Measure, "measure", 45*time.Second, "length of the measurement")
	bin := flags.String("bin", "bin/nodes", "folder of the programs that make nodes-programs builds")
	project := flags.String("project", ".", "folder of the project")
	usageDir := flags.String("usage", "", "folder of the public usage of real machines (lab/usage.sh)")
	until := flags.Duration("for", 0, "start no run after this time; 0: run all that are missing")
	first := flags.Int("first", 1, "seed of the first runs")
	record := flags.Bool("record", false, "record the cluster with plimsoll record --follow, in the folder recording of RESULTS")
	only := flags.String("only", "", "only runs whose name contains this text, such as warm")
	flags.Usage = func() {
		fmt.Fprint(os.Stderr, "Measures the profiles on real nodes, as root. Runs whose file exists are not repeated.\n\n"+
			"Usage:\n  experiment -usage FOLDER RESULTS\n  experiment table RESULTS\n\nFlags:\n")
		flags.PrintDefaults()
	}
	if len(os.Args) == 3 && os.Args[1] == "table" {
		exit(printTable(os.Stdout, os.Args[2]))
	}
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() != 1 || *usageDir == "" || s.Pods%2 != 0 {
		flags.Usage()
		os.Exit(2)
	}
	absolute := func(path string) string {
		path, err := filepath.Abs(path)
		if err != nil {
			exit(err)
		}
		return path
	}
	e := &experiment{
		settings: s, bin: absolute(*bin), project: absolute(*project), dir: absolute(flags.Arg(0)), only: *only,
		first: *first, record: *record,
	}
	if *until > 0 {
		e.until = time.Now().Add(*until)
	}
	realnodes.Enter()
	var err error
	if e.sources, err = readSources(absolute(*usageDir)); err != nil {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	exit(e.runAll(ctx))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// experiment runs what is missing.
type experiment struct {
	settings
	bin, project, dir, only string
	first                   int
	record                  bool
	until                   time.Time
	sources                 []source
	cluster                 *realnodes.Cluster
	scheduler               *realnodes.Scheduler
	observer                *observer
	// seenAll is set when the scheduler has seen all workloads.
	seenAll bool
}

// run is one run.
type run struct {
	history history
	seed    int
	arm     string
}

func (r run) String() string { return fmt.Sprintf("%s-%02d-%s", r.history, r.seed, r.arm) }

// missing returns the runs that have no file, pair by pair. The order of the arms of a pair is drawn by its seed.
func (e *experiment) missing() (runs []run) {
	for _, p := range plans {
		for seed := e.first; seed < e.first+p.seeds; seed++ {
			arms := slices.Clone(p.arms)
			random := rand.New(rand.NewPCG(uint64(seed), 0x61726d73))
			random.Shuffle(len(arms), func(i, j int) { arms[i], arms[j] = arms[j], arms[i] })
			for _, arm := range arms {
				r := run{p.history, seed, arm}
				_, err := os.Stat(e.file(r))
				if errors.Is(err, fs.ErrNotExist) && strings.Contains(r.String(), e.only) {
					runs = append(runs, r)
				}
			}
		}
	}
	return runs
}

func (e *experiment) file(r run) string { return filepath.Join(e.dir, r.String()+".json") }

// runAll starts the cluster and runs what is missing.
func (e *experiment) runAll(ctx context.Context) (err error) {
	runs := e.missing()
	fmt.Printf("%d runs are missing in %s\n", len(runs), e.dir)
	if len(runs) == 0 {
		return nil
	}
	if err := os.MkdirAll(e.dir, 0o755); err != nil {
		return err
	}
	options := realnodes.Options{Nodes: e.Nodes, CPU: e.CPU, Memory: e.Memory, Bin: e.bin}
	if e.cluster, err = realnodes.Start(ctx, options); err != nil {
		return err
	}
	defer e.cluster.Stop()
	if err := e.cluster.ApplyChart(ctx, e.project, chartValues); err != nil {
		return err
	}
	if err := e.restartScheduler(ctx); err != nil {
		return err
	}
	if e.record {
		follower, err := e.cluster.StartServer(
			"record",
			e.cluster.Program("plimsoll"),
			"record",
			"--follow",
			"--step",
			realnodes.Resolution.String(),
			"--kubeconfig",
			e.cluster.Kubeconfig,
			"-o",
			filepath.Join(e.dir, "recording"),
		)
		if err != nil {
			return err
		}
		defer follower.Stop()
	}
	for i, r := range runs {
		if !e.until.IsZero() && time.Now().After(e.until) {
			fmt.Printf("the time is over: %d runs remain\n", len(runs)-i)
			return nil
		}
		if err := e.prepare(ctx, r); err != nil {
			return err
		}
		result, err := e.measure(ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		result.print(os.Stdout)
		raw, err := json.MarshalIndent(result, "", " ")
		if err == nil {
			err = os.WriteFile(e.file(r), append(raw, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare gives the scheduler the history of a run: none, or the one of an earlier run.
func (e *experiment) prepare(ctx context.Context, r run) error {
	switch {
	case r.history == cold:
		e.seenAll = false
		return e.restartScheduler(ctx)
	case !e.seenAll:
		e.seenAll = true
		fmt.Println("a run that is not measured, for the history of the scheduler ...")
		for seed := r.seed - historyRuns; seed < r.seed; seed++ {
			result, err := e.measure(ctx, run{warm, seed, defaultArm})
			if err != nil {
				return err
			}
			result.print(os.Stdout)
		}
	}
	return nil
}

// restartScheduler starts the scheduler without a history, and the observer of its predictions.
func (e *experiment) restartScheduler(ctx context.Context) (err error) {
	if e.scheduler != nil {
		e.scheduler.Stop()
	}
	configuration, err := e.schedulerConfiguration()
	if err != nil {
		return err
	}
	if e.scheduler, err = e.cluster.StartScheduler(ctx, "scheduler", e.cluster.Program("scheduler"), configuration); err != nil {
		return err
	}
	if e.observer != nil {
		e.observer.stop()
	}
	e.observer, err = newObserver(ctx, e.cluster)
	return err
}
