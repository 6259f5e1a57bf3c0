// Command dashboardgen writes the dashboards of Plimsoll, for Grafana, into a
// folder. What is on them is in a file for each: node.go, slack.go, fleet.go,
// load.go.
//
// It is part of make generate.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// dashboards are all there are.
var dashboards = []dashboard{node, slack, fleet, load}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboardgen FOLDER")
		os.Exit(2)
	}
	for _, d := range dashboards {
		raw, err := encode(d)
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], d.name+".json"), raw, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// encode returns a dashboard as Grafana reads it.
func encode(d dashboard) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // queries have < and > in them
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d.model())
	return b.Bytes(), err
}
