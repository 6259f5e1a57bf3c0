// Command openb converts the openb trace, the nodes and pods of a production cluster with GPUs (Alibaba cluster-trace-gpu-v2023), to a
// recording for plimsoll simulate and plimsoll compare.
//
//	openb [flags] NODES.csv PODS.csv OUT.ndjson.gz
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/lab/openb/trace"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openb:", err)
		os.Exit(1)
	}
}

func run() error {
	var o trace.Options
	flag.IntVar(&o.PerSecond, "pack", 1, "number of pods that arrive per second and do not end, 0 for the times of the trace")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of the limits")
	ratio := flag.Float64("limit-ratio", 2, "limits of pods, as a multiple of their requests, at least 1")
	flag.Parse()
	if flag.NArg() != 3 {
		return errors.New("usage: openb [flags] NODES.csv PODS.csv OUT.ndjson.gz")
	}
	o.Limits = generate.Limits{CPU: *ratio, Memory: *ratio}
	if err := o.Limits.Validate(); err != nil {
		return fmt.Errorf("-limit-ratio: %w", err)
	}
	return trace.Convert(flag.Arg(0), flag.Arg(1), flag.Arg(2), o)
}
