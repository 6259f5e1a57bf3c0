// Command dashboardgen generates the Grafana dashboards of Plimsoll in a folder. It is part of make
// generate.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// dashboards has all dashboards.
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

// encode returns a dashboard as JSON.
func encode(d dashboard) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // Queries have < and >.
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d.model())
	return b.Bytes(), err
}
