package base

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// The output formats that commands have in common.
const (
	FormatTable = "table"
	// FormatWide is a table with more columns.
	FormatWide = "wide"
	FormatJSON = "json"
	FormatYAML = "yaml"
	// FormatMarkdown is for results that go into a pull request or an issue.
	FormatMarkdown = "markdown"
)

// Output is the flag --output of a command.
type Output struct {
	// Format is the value of the flag.
	Format    string
	formats   []string
	noHeaders bool
}

// AddFlag adds the flag to a command. The command prints the additional formats itself.
func (o *Output) AddFlag(cmd *cobra.Command, additional ...string) {
	o.formats = append([]string{FormatTable, FormatWide, FormatJSON, FormatYAML}, additional...)
	cmd.Flags().StringVarP(&o.Format, "output", "o", FormatTable, o.choice())
	CheckFlag(cmd, "output", o.choice(), func(text string) bool { return slices.Contains(o.formats, text) })
	CompleteWith(cmd, "output", o.formats...)
}

// AddNoHeadersFlag adds the flag of commands that print one table.
func (o *Output) AddNoHeadersFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "do not print the headers of the table")
}

// choice returns the formats as text: table, wide, json or yaml.
func (o *Output) choice() string {
	last := len(o.formats) - 1
	return strings.Join(o.formats[:last], ", ") + " or " + o.formats[last]
}

// Print prints a result as JSON or YAML, which have the same fields, or else calls table. The output of
// table is always escaped as by EscapeLines. On a terminal, lines outside of tables are wrapped.
func (o *Output) Print(out io.Writer, result any, table func(io.Writer)) error {
	switch o.Format {
	case FormatJSON:
		return writeJSON(out, result)
	case FormatYAML:
		return writeYAML(out, result)
	}
	if isTerminal(out) {
		out = wrappedWriter{out}
	}
	table(Escaped(out))
	return nil
}

// writeJSON writes a value as indented JSON, with escapes in place of characters that are not printable.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(Escaped(out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// writeYAML writes a value as YAML. It is converted from JSON with the escapes of YAML: package yaml rejects control characters.
func writeYAML(out io.Writer, value any) error {
	asJSON, err := json.Marshal(value)
	if err != nil {
		return err
	}
	raw, err := yaml.JSONToYAML([]byte(escapeYAML(asJSON)))
	if err == nil && EscapeLines(string(raw)) != string(raw) {
		raw, err = quoteUnprintable(raw)
	}
	if err == nil {
		_, err = out.Write(raw)
	}
	return err
}

// quoteUnprintable returns a YAML document in which texts with characters that are not printable have double quotes, and escapes in place
// of these characters.
func quoteUnprintable(raw []byte) ([]byte, error) {
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	quoteNode(&document)
	var quoted bytes.Buffer
	encoder := yamlv3.NewEncoder(&quoted)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err := errors.Join(encoder.Encode(&document), encoder.Close())
	return []byte(escapeYAML(quoted.Bytes())), err
}

// escapeYAML replaces the characters in quoted texts that are not printable. YAML has no pairs of surrogates.
func escapeYAML(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		if r == '\n' || strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

func quoteNode(node *yamlv3.Node) {
	if node.Kind == yamlv3.ScalarNode && EscapeLines(node.Value) != node.Value {
		node.Style = yamlv3.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quoteNode(child)
	}
}

// Warnings returns a function that prints warnings, each on one line.
func Warnings(out io.Writer) func(string) {
	return func(message string) {
		fmt.Fprintln(out, "plimsoll: warning:", oneLine(message))
	}
}
