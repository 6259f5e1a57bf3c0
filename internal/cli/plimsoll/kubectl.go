package plimsoll

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Names under which kubectl starts the program: as a plugin, and for completion of its arguments.
const (
	pluginName     = "kubectl-plimsoll"
	completionName = "kubectl_complete-plimsoll"
)

// invocation matches the beginning of a command line in an example.
var invocation = regexp.MustCompile(`(?m)(^ *|\| |until )plimsoll `)

// adaptToKubectl adapts the command to the name under which the program was started, and returns
// its arguments. As a plugin, its help says "kubectl plimsoll".
func adaptToKubectl(cmd *cobra.Command, program string, args []string) []string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if name != pluginName && name != completionName {
		return args
	}
	cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl plimsoll"}
	adaptExamples(cmd)
	if name == completionName {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// adaptExamples replaces plimsoll by kubectl plimsoll in the examples of a command and its
// subcommands.
func adaptExamples(cmd *cobra.Command) {
	cmd.Example = invocation.ReplaceAllString(cmd.Example, "${1}kubectl plimsoll ")
	for _, subcommand := range cmd.Commands() {
		adaptExamples(subcommand)
	}
}
