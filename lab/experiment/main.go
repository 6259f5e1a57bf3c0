// Command experiment runs the experiment of lab/results: the profiles of this project and the formulas of other
// schedulers (package baselines) in all scenarios (package scenarios) with the same seeds. It writes one result per
// scenario, as plimsoll compare -o json does, which lab/tables turns into tables.
//
//	experiment -usage USAGE [flags] FOLDER
//
// Scenarios whose result is in FOLDER already are not run again. -quick runs two seeds of the tuning half, to choose
// arguments. Profiles may also be files with a KubeSchedulerConfiguration.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/baselines"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// serveCommand is the argument of the processes that execute a run.
const serveCommand = "serve-run"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	var err error
	if len(os.Args) == 2 && os.Args[1] == serveCommand {
		err = serve(ctx, os.Stdin, os.Stdout)
	} else {
		err = start(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// serve runs the job that it reads, with all plugins.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var read bytes.Buffer
	var job compare.Job
	if err := json.NewDecoder(io.TeeReader(in, &read)).Decode(&job); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	var future baselines.Future
	if job.Profile.Name == scenarios.Oracle {
		recorded, err := job.Source.Input(job.Seed)
		if err != nil {
			return err
		}
		future = baselines.NewFuture(recorded)
	}
	if err := engine.Register(baselines.Registry(future)); err != nil {
		return err
	}
	return compare.Serve(ctx, io.MultiReader(&read, in), out)
}

// options are the flags.
type options struct {
	part, profiles, usage, folder string
	names                         *regexp.Regexp
	seed, seeds, processes        int
	use                           float64
	list, record                  bool
}

// tuningSeed is the first seed of -quick: no seed of the published results.
const tuningSeed = 1001

func parse(arguments []string) (options, error) {
	var o options
	var names string
	var quick bool
	flags := flag.NewFlagSet("experiment", flag.ContinueOnError)
	flags.StringVar(&o.part, "part", "published", "part of the scenarios: published, tuning or all")
	flags.StringVar(&names, "scenarios", "", "regular expression of the names of scenarios")
	flags.StringVar(&o.profiles, "profiles", "", "names and files of profiles separated by commas, the baseline first; all if empty")
	flags.StringVar(&o.usage, "usage", "", "folder of the public usage of real machines")
	flags.Float64Var(&o.use, "use", 0, "mean usage of the pods as a multiple of their requests, as in the scenario if 0")
	flags.IntVar(&o.seed, "seed", 1, "first seed")
	flags.IntVar(&o.seeds, "seeds", 10, "number of seeds")
	flags.IntVar(&o.processes, "processes", 2, "parallel processes")
	flags.BoolVar(&o.list, "list", false, "print the scenarios and the expected CPU time, and run nothing")
	flags.BoolVar(&o.record, "record", false, "write the recordings of the scenarios and the first seed to FOLDER, and run nothing")
	flags.BoolVar(&quick, "quick", false, "2 seeds of the tuning half, unless -part, -seed and -seeds are set")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if quick {
		for name, apply := range map[string]func(){
			"part": func() { o.part = "tuning" }, "seed": func() { o.seed = tuningSeed }, "seeds": func() { o.seeds = 2 },
		} {
			if !set[name] {
				apply()
			}
		}
	}
	return o, o.complete(flags, names)
}

// complete validates the flags and the argument.
func (o *options) complete(flags *flag.FlagSet, names string) (err error) {
	switch o.part {
	case "published", "tuning", "all":
	default:
		return fmt.Errorf("-part: invalid value %q: must be published, tuning or all", o.part)
	}
	if !o.list {
		if err := checkFolder(o.usage); err != nil {
			return err
		}
	}
	if o.names, err = regexp.Compile(names); err != nil {
		return fmt.Errorf("-scenarios: %w", err)
	}
	for name, value := range map[string]int{"seed": o.seed, "seeds": o.seeds, "processes": o.processes} {
		if value < 1 {
			return fmt.Errorf("-%s: invalid value %d: must be at least 1", name, value)
		}
	}
	switch {
	case flags.NArg() == 1:
		o.folder = flags.Arg(0)
	case !o.list || flags.NArg() > 1:
		return fmt.Errorf("found %d arguments: must be the folder for the results", flags.NArg())
	}
	return nil
}

// selected returns the scenarios to run.
func (o *options) selected() []scenarios.Scenario {
	chosen := slices.DeleteFunc(scenarios.All(), func(s scenarios.Scenario) bool {
		return o.part != "all" && o.part != string(s.Part) || !o.names.MatchString(s.Name)
	})
	for i := range chosen {
		chosen[i].Cluster.Use = o.use
	}
	return chosen
}

func start(ctx context.Context, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	compared, err := readProfiles(o.profiles)
	if err != nil {
		return err
	}
	chosen := o.selected()
	expected := 0.0
	for _, s := range chosen {
		expected += s.CPUSeconds * float64(len(compared)*o.seeds)
		if o.list {
			fmt.Printf("%-32s %s\n", s.Name, s.Part)
		}
	}
	fmt.Printf("%d scenarios x %d profiles x %d seeds, expected CPU time %.0f minutes on an idle machine\n",
		len(chosen), len(compared), o.seeds, expected/60)
	if o.list {
		return nil
	}
	if o.record {
		return record(o, chosen)
	}
	return run(ctx, o, chosen, compared)
}
