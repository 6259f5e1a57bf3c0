// Command peers measures the released code of scheduler-plugins and of Open Cluster Management, and
// the code of this project, with the same workload in one run. It prints a table, and with -write
// replaces the table of a page. It must be started in lab.
//
// Two processes do the work, one for each side. Rounds alternate between them, so that a change of
// the machine's speed affects both, and the figures are medians. Times are CPU times.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// released is the folder of the program with the released code of other projects.
const released = "peers/released"

func main() {
	ctx := context.Background()
	run := compare
	if len(os.Args) > 1 && os.Args[1] == "ours" {
		run = serveOurs
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// compare measures all cases on both sides and prints the table.
func compare(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	rounds := flags.Int("rounds", 7, "number of measurements of each case on each side")
	page := flags.String("write", "", "page whose table is replaced")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds: invalid value %d: must be at least 1", *rounds)
	}
	folder, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	theirs, ours, stop, err := start(ctx, folder)
	if err != nil {
		return err
	}
	defer stop()
	results := make([]measured, len(cases))
	for range *rounds {
		for i, c := range cases {
			for _, side := range []struct {
				process *process
				name    string
				times   *[]float64
			}{{theirs, c.theirs, &results[i].theirs}, {ours, c.ours, &results[i].ours}} {
				took, err := side.process.measure(side.name)
				if err != nil {
					return err
				}
				*side.times = append(*side.times, took)
			}
		}
	}
	table, err := tableOf(ctx, results)
	if err != nil {
		return err
	}
	fmt.Print(table)
	if *page == "" {
		return nil
	}
	return replaceTable(*page, table)
}

// measured has the times of a case on both sides in nanoseconds.
type measured struct{ theirs, ours []float64 }

// median returns the median of times.
func median(times []float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// start builds the other program, writes the workload, serves the load of the nodes, and starts both sides.
func start(ctx context.Context, folder string) (theirs, ours *process, stop func(), err error) {
	program, workload := filepath.Join(folder, "released"), filepath.Join(folder, "workload.json")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Stdout, build.Stderr = released, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return nil, nil, nil, fmt.Errorf("building %s: %w", released, err)
	}
	if err := writeWorkload(workload); err != nil {
		return nil, nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, nil, err
	}
	server := &http.Server{Handler: newWatcher(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	address := "http://" + listener.Addr().String()
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	if theirs, err = startProcess(ctx, program, workload, address); err != nil {
		return nil, nil, nil, err
	}
	if ours, err = startProcess(ctx, self, "ours", workload, address); err != nil {
		return nil, nil, nil, err
	}
	return theirs, ours, func() {
		theirs.stop()
		ours.stop()
		_ = server.Close()
	}, nil
}

// process is a program that measures cases, one at a time.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// startProcess starts a program.
func startProcess(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, program, args...)}
	p.command.Stderr = os.Stderr
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	return p, p.command.Start()
}

// measure returns the time of one operation of a case in nanoseconds.
func (p *process) measure(name string) (float64, error) {
	if _, err := fmt.Fprintln(p.in, name); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if !p.out.Scan() {
		return 0, fmt.Errorf("%s: %w", name, errors.Join(errors.New("the program ended"), p.out.Err()))
	}
	took, err := strconv.ParseFloat(strings.TrimSpace(p.out.Text()), 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return took, nil
}

// stop ends the program.
func (p *process) stop() {
	_ = p.in.Close()
	_ = p.command.Wait()
}
