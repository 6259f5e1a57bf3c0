package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
)

// This file is the same in lab/peers and in lab/peers/released, which is a module of its own.

// operation is the operation that a case measures.
type operation func() error

// serve measures the case that each line of in names, and writes its time in nanoseconds to a line of out.
func serve(in io.Reader, out io.Writer, operations map[string]operation) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name := strings.TrimSpace(lines.Text())
		do := operations[name]
		if do == nil {
			return fmt.Errorf("unknown case %q", name)
		}
		took, err := measure(do)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintln(out, took)
	}
	return lines.Err()
}

// measure returns the CPU time of one operation in nanoseconds. It repeats the operation for a
// quarter of a second.
func measure(do operation) (float64, error) {
	const least = 250 * time.Millisecond
	for n := 1; ; n *= 4 {
		before := cpuTime()
		for range n {
			if err := do(); err != nil {
				return 0, err
			}
		}
		if took := cpuTime() - before; took >= least {
			return float64(took.Nanoseconds()) / float64(n), nil
		}
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail with these arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
