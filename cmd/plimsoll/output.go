package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The forms in which every command prints its results.
const (
	asTable = "table"
	asJSON  = "json"
	asYAML  = "yaml"
)

// output is the form in which a command prints its result: its flag -o.
type output struct {
	form string
	// forms are those that the command has.
	forms []string
}

// add adds the flag to a command. more are forms that it has beside those of
// every command; it prints them itself.
func (o *output) add(cmd *cobra.Command, more ...string) {
	o.forms = append([]string{asTable, asJSON, asYAML}, more...)
	cmd.Flags().StringVarP(&o.form, "output", "o", asTable, o.choice())
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.forms, cobra.ShellCompDirectiveNoFileComp))
}

// choice is the forms in words: table, json or yaml.
func (o *output) choice() string {
	last := len(o.forms) - 1
	return strings.Join(o.forms[:last], ", ") + " or " + o.forms[last]
}

// validate says what is wrong with what was chosen.
func (o *output) validate() error {
	if !slices.Contains(o.forms, o.form) {
		return fmt.Errorf("--output: found %q, want %s", o.form, o.choice())
	}
	return nil
}

// print prints a result: by table, or as JSON or YAML, which have the same fields.
func (o *output) print(out io.Writer, result any, table func(io.Writer)) error {
	switch o.form {
	case asJSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	case asYAML:
		raw, err := yaml.Marshal(result)
		if err == nil {
			_, err = out.Write(raw)
		}
		return err
	}
	table(out)
	return nil
}
