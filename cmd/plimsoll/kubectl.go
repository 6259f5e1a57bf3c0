package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// The names under which kubectl starts the program, which are links to it: as a
// plugin, and to complete what is typed after "kubectl plimsoll".
const (
	pluginName     = "kubectl-plimsoll"
	completionName = "kubectl_complete-plimsoll"
)

// typed finds where an example starts the program.
var typed = regexp.MustCompile(`(?m)(^ *|\| |until )plimsoll `)

// as makes the command be what the program was started as, and returns its
// arguments. As a plugin it calls itself in its help what users type.
func as(cmd *cobra.Command, program string, args []string) []string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if name != pluginName && name != completionName {
		return args
	}
	cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl plimsoll"}
	rename(cmd)
	if name == completionName {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// rename has the examples of a command and of those below it say what users of
// kubectl type.
func rename(cmd *cobra.Command) {
	cmd.Example = typed.ReplaceAllString(cmd.Example, "${1}kubectl plimsoll ")
	for _, below := range cmd.Commands() {
		rename(below)
	}
}
