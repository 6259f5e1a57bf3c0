// Command languagelint reports words that this project does not use in names, comments,
// messages and pages, each with its file and line. The list is words.txt.
//
//	go run ./hack/languagelint FILE...
//
// It exits with 1 if it reports anything.
package main

import (
	_ "embed"
	"fmt"
	"os"
)

//go:embed words.txt
var list string

func main() {
	rules, err := parseRules(list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "languagelint: words.txt:", err)
		os.Exit(2)
	}
	found := 0
	for _, file := range os.Args[1:] {
		source, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "languagelint:", err)
			os.Exit(2)
		}
		for _, f := range check(file, source, rules) {
			fmt.Println(f)
			found++
		}
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "languagelint: %d findings; hack/languagelint/words.txt says what to write instead\n", found)
		os.Exit(1)
	}
}
