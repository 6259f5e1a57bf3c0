// Package plimsoll is the command plimsoll, which is also a plugin of kubectl.
package plimsoll

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/doctor"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/load"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/record"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/score"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/shadow"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// Run runs the command with the arguments of the process and returns the exit code.
func Run(ctx context.Context) int {
	cmd := newCommand()
	cmd.SetArgs(adaptToKubectl(cmd, os.Args[0], os.Args[1:]))
	return report(execute(ctx, cmd, base.NewStdout(os.Stdout)))
}

// execute runs the command. Output that cannot be written is always an error.
func execute(ctx context.Context, cmd *cobra.Command, out *base.Stdout) error {
	cmd.SetOut(out)
	refuseUnknownTopics(cmd)
	err := cmd.ExecuteContext(ctx)
	return cmp.Or(base.Failure(out.Err()), err)
}

// refuseUnknownTopics makes unknown arguments of the commands help and completion, which cobra adds, errors.
func refuseUnknownTopics(cmd *cobra.Command) {
	cmd.InitDefaultHelpCmd()
	cmd.InitDefaultCompletionCmd()
	for _, added := range cmd.Commands() {
		switch added.Name() {
		case "help":
			added.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, _ := cmd.Find(args); len(rest) > 0 {
					return base.UnknownCommand(found, rest[0])
				}
				return nil
			}
		case "completion":
			base.ConfigureGroup(added)
			for _, shell := range added.Commands() {
				shell.Args = base.NoArgs
			}
		}
	}
}

// report prints an error and returns the exit code. Errors are usage errors unless they say
// otherwise.
func report(err error) int { return base.Report("plimsoll", err, base.ExitUsage) }

// newCommand returns the root command with all subcommands.
func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plimsoll",
		Short: "Scheduling by limits and load, slack and placement for Kubernetes",
		Long: `Plimsoll shows how schedulers with its plugins score nodes, simulates changes before
they are made, and inspects slack, placements and load.`,
		Example: `  # Start here: why is a pod of your cluster on its node?
  plimsoll explain pod NAME -n NAMESPACE

  # What would another profile change in your cluster?
  plimsoll snapshot -o s.ndjson.gz
  plimsoll compare --profile default --profile predicted --recording s.ndjson.gz

  # The same without a cluster.
  plimsoll compare --profile default --profile predicted \
    --generate nodes=50,pods=1500,fill=0.9,best-effort=0.1,over=7200 \
    --usage bursts:mean=0.7 --seeds 5`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			// The logs of the scheduler's code are not part of the output.
			klog.LogToStderr(false)
			klog.SetOutput(io.Discard)
		},
	}
	version.AddFlag(cmd)
	base.ConfigureGroup(cmd)
	cmd.AddCommand(
		record.NewSnapshotCommand(), record.NewCommand(), score.NewScoreCommand(), score.NewExplainCommand(),
		whatif.NewSimulateCommand(), whatif.NewCompareCommand(), whatif.NewBacktestCommand(), whatif.NewRecommendCommand(),
		whatif.NewMergeCommand(), whatif.NewRunCommand(), shadow.NewCommand(),
		load.NewCommand(), slack.NewCommand(), placement.NewCommand(), doctor.NewCommand(), newVersionCommand(),
	)
	base.ConfigureHelp(cmd)
	base.CheckFlags(cmd)
	cmd.SetFlagErrorFunc(base.FlagError)
	return cmd
}

func newVersionCommand() *cobra.Command {
	var output base.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  plimsoll version
  plimsoll version -o json`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return output.Print(cmd.OutOrStdout(), version.Get(), func(out io.Writer) { fmt.Fprintln(out, "plimsoll", version.String()) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

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
