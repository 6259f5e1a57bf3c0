// Command importgraph writes the diagram of docs/ARCHITECTURE.md: which parts of this project
// import which, from the import statements of all packages without their tests.
//
//	go run ./hack/importgraph docs/ARCHITECTURE.md
//
// It replaces what is between the two markers of the file, and fails if parts import each other
// in a cycle. Arrows that follow from others are left out.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "importgraph:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("found %d arguments: must be the file with the markers", len(args))
	}
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Stderr = os.Stderr
	imports, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	diagram, err := mermaid(parts(strings.Split(string(imports), "\n")))
	if err != nil {
		return err
	}
	page, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	updated, err := replace(string(page), diagram)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[0], []byte(updated), 0o644)
}
