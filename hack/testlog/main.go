// Command testlog reads the output of go test -json. It prints one line per package and the output of what failed, and appends the
// durations of packages and tests to a file. With -slowest it prints the slowest of such a file.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	slowest := flag.Bool("slowest", false, "print the twenty slowest packages and tests of the file")
	flag.Parse()
	if err := run(*slowest, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
}

func run(slowest bool, name string) error {
	if slowest {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("%w: run make test first", err)
		}
		defer file.Close()
		return printSlowest(os.Stdout, file)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(printResults(os.Stdout, file, os.Stdin), file.Close())
}

// printResults prints the results in events and writes the durations, as events.
func printResults(out, durations io.Writer, in io.Reader) error {
	type key struct{ pkg, test string }
	output := map[key]*strings.Builder{}
	lines, encoder := bufio.NewReader(in), json.NewEncoder(durations)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			if err == io.EOF {
				return nil
			}
			return err
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(out, "%s", line)
			continue
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			if output[k] == nil {
				output[k] = &strings.Builder{}
			}
			output[k].WriteString(e.Output)
		case "pass", "fail", "skip":
			text := ""
			if output[k] != nil {
				text = output[k].String()
			}
			delete(output, k)
			switch {
			case e.Action == "fail":
				fmt.Fprint(out, text)
			case e.Test == "" && e.Action == "pass":
				fmt.Fprintf(out, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
			}
			if e.Action != "skip" {
				if err := encoder.Encode(event{Package: e.Package, Test: e.Test, Elapsed: e.Elapsed}); err != nil {
					return err
				}
			}
		}
	}
}

// printSlowest prints the twenty slowest packages, and the twenty slowest tests that are no subtests.
func printSlowest(out io.Writer, in io.Reader) error {
	var packages, tests []event
	decoder := json.NewDecoder(in)
	for {
		var e event
		if err := decoder.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		switch {
		case e.Test == "":
			packages = append(packages, e)
		case !strings.Contains(e.Test, "/"):
			tests = append(tests, e)
		}
	}
	for _, list := range [][]event{packages, tests} {
		slices.SortFunc(list, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
		for _, e := range list[:min(20, len(list))] {
			fmt.Fprintf(out, "%7.1fs  %s %s\n", e.Elapsed, e.Package, e.Test)
		}
		fmt.Fprintln(out)
	}
	return nil
}
