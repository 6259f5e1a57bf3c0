// Package command is the complete kube-scheduler, with all in-tree plugins, flags, metrics and health
// checks, and Plimsoll's plugins registered.
package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/configz"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
	"github.com/plimsoll-k8s/plimsoll/plugins"
)

// configzName is the name under which kube-scheduler registers its configuration for /configz.
const configzName = "componentconfig"

// StartError is an error that prevents the scheduler from starting: an invalid flag or configuration,
// or an address that is in use.
type StartError struct{ err error }

// Error returns the message of the cause.
func (e *StartError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.err }

// NewCommand returns the scheduler as a command with a name.
func NewCommand(name string) *cobra.Command {
	opts := options.NewOptions()
	cmd := &cobra.Command{
		Use:   name,
		Short: "kube-scheduler with Plimsoll's plugins",
		Long: `The complete Kubernetes scheduler with additional Score plugins. Enable them in the
profiles of the scheduler configuration:

` + pluginList() + `
Configuration files of versions v1beta2 and v1beta3 are read as v1.

It supports API servers of Kubernetes ` + emulation.Supported() + `. It reads the version of the API
server at its start, and has the features of that version, unless --emulated-version
is set.`,
		Example: `  # Run a second scheduler; pods select it with spec.schedulerName.
  ` + name + ` --config=scheduler.yaml --leader-elect-resource-name=` + name + `

  # Print the effective configuration with all defaults.
  ` + name + ` --config=scheduler.yaml --write-config-to=/dev/stdout`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return &StartError{err}
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(opts.Logs, nil); err != nil {
				return &StartError{err}
			}
			cliflag.PrintFlags(cmd.Flags())
			return Run(server.SetupSignalContext(), opts, nil)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &StartError{fmt.Errorf("%w (see %s --help)", err, name)}
	})
	flagSets := *opts.Flags
	for _, set := range flagSets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	version.AddFlag(cmd)
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	setHelp(cmd, flagSets, columns)
	return cmd
}

// pluginList returns one line of help per plugin.
func pluginList() string {
	var b strings.Builder
	for _, plugin := range plugins.All {
		fmt.Fprintf(&b, "  %-24s  %s\n", plugin.Name, plugin.Description)
	}
	return b.String()
}

// setHelp makes the help print flags by section, after the description and the examples.
func setHelp(cmd *cobra.Command, flagSets cliflag.NamedFlagSets, columns int) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s [flags]\n\nExamples:\n%s\n", cmd.Long, cmd.Use, cmd.Example)
		cliflag.PrintSections(out, flagSets, columns)
	})
}

// running is true while Run runs.
var running atomic.Bool

// Run runs the scheduler until ctx is done. If the scheduler cannot start, it returns a *StartError
// and leaves nothing running. started, if not nil, is called with the scheduler after its setup.
// Schedulers can run one after the other in a process, but not at the same time: their metrics and
// /configz are global to the process.
func Run(ctx context.Context, opts *options.Options, started func(*scheduler.Scheduler)) error {
	if !running.CompareAndSwap(false, true) {
		return &StartError{errors.New("another kube-scheduler runs in this process: wait until it has ended, or start a process for each")}
	}
	defer running.Store(false)
	defer configz.Delete(configzName)
	ctx, stop := prediction.WithShutdown(ctx)
	defer stop()
	if err := emulate(ctx, opts); err != nil {
		if ctx.Err() != nil {
			return nil // a requested shutdown
		}
		return &StartError{err}
	}
	if opts.ConfigFile != "" {
		// app.Setup reads the file again. Load reports every error with the name of the file, before
		// anything is started.
		cfg, err := config.Load(opts.ConfigFile)
		if err != nil {
			return &StartError{err}
		}
		text, _ := config.ReadFile(opts.ConfigFile) // read before
		for _, warning := range config.Warnings(cfg, text) {
			klog.FromContext(ctx).Info("Warning: " + warning)
		}
	}
	completed, sched, err := app.Setup(ctx, opts, plugins.Options()...)
	if err != nil {
		return &StartError{err}
	}
	if started != nil {
		started(sched)
	}
	err = app.Run(ctx, completed, sched)
	if ctx.Err() != nil {
		return nil // a requested shutdown; app.Run returns an error even then
	}
	return err
}

// ExitCode returns the exit code for an error of the command: 2 if the scheduler could not start, 1
// if it failed later.
func ExitCode(err error) int {
	var start *StartError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &start):
		return 2
	}
	return 1
}
