// Command results generates the charts, tables and list of runs of docs/results.md from results of
// plimsoll compare. docs/results/run.sh runs the comparisons.
//
//	results FOLDER NAME=RESULT.json...
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: results FOLDER NAME=RESULT.json...")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
