// Command autoscalers answers which profile to use beside an autoscaler that adds and removes nodes: it runs four profiles of the scheduler
// beside the real Karpenter with its simulated provider, on an embedded control plane, and beside the model of an autoscaler of plimsoll
// compare, with the same arrivals of pods. It appends each run to a file, continues where it was interrupted, and writes the tables.
//
//	autoscalers [flags] RESULTS
//
// It is run in the folder lab. RESULTS is the folder of the runs (autoscalers.csv) and of the tables (autoscalers.md).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/karpenter"
)

func main() {
	controlplane.RunIfChild()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "autoscalers:", err)
		os.Exit(1)
	}
}

// profiles are the built-in profiles that are compared. The first is the baseline.
var profiles = []string{"default", "most-allocated", "predicted", "packed"}

// autoscalers are the names of the autoscalers.
var autoscalers = []string{"Karpenter", "model"}

// key identifies a run.
type key struct {
	Autoscaler, Arrivals, Profile string
	Seed                          uint64
}

func run(ctx context.Context) error {
	seeds := flag.Uint64("seeds", 3, "number of `seeds` beside Karpenter, each of which takes eleven minutes for each profile and arrivals")
	modelSeeds := flag.Uint64("model-seeds", 10, "number of `seeds` beside the model")
	parallel := flag.Int("parallel", 4, "`number` of runs beside Karpenter at the same time; each needs a fifth of a processor")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("usage: autoscalers [flags] RESULTS")
	}
	folder := flag.Arg(0)
	runs, err := readRuns(filepath.Join(folder, "autoscalers.csv"))
	if err != nil {
		return err
	}
	var missing []key
	for _, autoscaler := range autoscalers {
		last := *seeds
		if autoscaler == "model" {
			last = *modelSeeds
		}
		// All profiles of a seed run at about the same time.
		for seed := uint64(1); seed <= last; seed++ {
			for _, kind := range kinds {
				for _, profile := range profiles {
					k := key{autoscaler, kind.name, profile, seed}
					if !runs.has(k) {
						missing = append(missing, k)
					}
				}
			}
		}
	}
	if len(missing) > 0 {
		if err := runAll(ctx, runs, missing, *parallel); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "autoscalers.md"), []byte(runs.page()), 0o644)
}

// runAll runs all missing runs.
func runAll(ctx context.Context, runs *runs, missing []key, parallel int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beside, model := slices.Clone(missing), slices.Clone(missing)
	beside = slices.DeleteFunc(beside, func(k key) bool { return k.Autoscaler == "model" })
	model = slices.DeleteFunc(model, func(k key) bool { return k.Autoscaler != "model" })
	work := func(todo <-chan key, do func(context.Context, key) (figures, error)) {
		for k := range todo {
			f, err := do(ctx, k)
			if err == nil {
				err = runs.add(k, f)
			}
			if err != nil {
				cancel(fmt.Errorf("%v: %w", k, err))
				return
			}
			fmt.Printf("%v: %+v\n", k, f)
		}
	}
	var wait sync.WaitGroup
	wait.Go(func() { work(queue(ctx, model), runModel) })
	if len(beside) > 0 {
		p, err := build(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(p.folder) }()
		todo := queue(ctx, beside)
		for range parallel {
			wait.Go(func() { work(todo, p.run) })
		}
	}
	wait.Wait()
	return context.Cause(ctx)
}

// queue sends the keys until ctx ends.
func queue(ctx context.Context, keys []key) <-chan key {
	todo := make(chan key)
	go func() {
		defer close(todo)
		for _, k := range keys {
			select {
			case todo <- k:
			case <-ctx.Done():
				return
			}
		}
	}()
	return todo
}

// build builds the programs of the runs beside Karpenter.
func build(ctx context.Context) (*programs, error) {
	folder, err := os.MkdirTemp("", "autoscalers-")
	if err != nil {
		return nil, err
	}
	fmt.Println("building kube-scheduler with Plimsoll's plugins, and Karpenter")
	p := &programs{folder: folder, scheduler: filepath.Join(folder, "plimsoll-scheduler"), karpenter: filepath.Join(folder, "karpenter")}
	command := exec.CommandContext(ctx, "go", "build", "-o", p.scheduler, "./cmd/plimsoll-scheduler")
	command.Dir, command.Stderr = "..", os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("building plimsoll-scheduler: %w", err)
	}
	if p.source, err = karpenter.Find(ctx, "."); err != nil {
		return nil, err
	}
	return p, p.source.Build(ctx, p.karpenter)
}
