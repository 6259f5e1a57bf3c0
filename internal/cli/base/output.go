package base

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The output formats that commands have in common.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	// FormatMarkdown is that of commands whose result goes into a pull request or an issue.
	FormatMarkdown = "markdown"
)

// Output is the flag --output of a command.
type Output struct {
	// Format is the value of the flag.
	Format  string
	formats []string
}

// AddFlag adds the flag to a command. The command prints the additional formats itself.
func (o *Output) AddFlag(cmd *cobra.Command, additional ...string) {
	o.formats = append([]string{FormatTable, FormatJSON, FormatYAML}, additional...)
	cmd.Flags().StringVarP(&o.Format, "output", "o", FormatTable, o.choice())
	CompleteWith(cmd, "output", o.formats...)
}

// choice returns the formats as text: table, json or yaml.
func (o *Output) choice() string {
	last := len(o.formats) - 1
	return strings.Join(o.formats[:last], ", ") + " or " + o.formats[last]
}

// Validate returns an error if the command does not have the format.
func (o *Output) Validate() error {
	if !slices.Contains(o.formats, o.Format) {
		return InvalidValue("output", o.Format, o.choice())
	}
	return nil
}

// Print prints a result as JSON or YAML, which have the same fields, or else calls table, with a writer that wraps
// lines to the terminal. What is printed is escaped as by EscapeLines, whatever out is.
func (o *Output) Print(out io.Writer, result any, table func(io.Writer)) error {
	switch o.Format {
	case FormatJSON:
		return writeJSON(out, result)
	case FormatYAML:
		return writeYAML(out, result)
	}
	table(Fitted(out))
	return nil
}

// writeJSON writes a value as indented JSON, with escapes in place of characters that are not printable.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(Escaped(out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// writeYAML writes a value as YAML. It is converted from escaped JSON: package yaml rejects control
// characters.
func writeYAML(out io.Writer, value any) error {
	var asJSON bytes.Buffer
	if err := writeJSON(&asJSON, value); err != nil {
		return err
	}
	raw, err := yaml.JSONToYAML(asJSON.Bytes())
	if err == nil {
		_, err = Escaped(out).Write(raw)
	}
	return err
}

// Warnings returns a function that prints warnings, each on one line.
func Warnings(out io.Writer) func(string) {
	return func(message string) {
		fmt.Fprintln(out, "plimsoll: warning:", oneLine(message))
	}
}
