// Package command is the complete kube-scheduler (every in-tree plugin,
// flag, metric and health check) with Plimsoll's plugins registered.
package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
	"github.com/plimsoll-k8s/plimsoll/plugins"
)

// StartError is what keeps the scheduler from starting: flags, configuration,
// or an address that cannot be listened on.
type StartError struct{ err error }

func (e *StartError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.err }

// NewCommand returns the scheduler as a command of that name.
func NewCommand(name string) *cobra.Command {
	opts := options.NewOptions()
	cmd := &cobra.Command{
		Use:   name,
		Short: "kube-scheduler with Plimsoll's plugins",
		Long: `The complete Kubernetes scheduler with three more Score plugins, to be enabled in
the profiles of its configuration:

  NodeResourcesAllocatable  by how much a node has: fill small nodes first, or gather on large ones
  NodeResourcesLimits       by what limits leave free: oversubscribe evenly and as little as can be
  LowRiskOverCommitment     by the risk that limits and measured load make out

Configuration files of versions v1beta2 and v1beta3 are read as v1.`,
		Example: `  # As a second scheduler beside the cluster's own; pods choose it by spec.schedulerName.
  ` + name + ` --config=scheduler.yaml --leader-elect-resource-name=` + name + `

  # What the configuration comes to, with all defaults.
  ` + name + ` --config=scheduler.yaml --write-config-to=/dev/stdout`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return &StartError{err}
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := opts.ComponentGlobalsRegistry.Set(); err != nil {
				return &StartError{err}
			}
			return nil
		},
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
	sets := *opts.Flags
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	version.AddFlag(cmd)
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	setHelp(cmd, sets, columns)
	return cmd
}

// setHelp prints flags by section, after the description and the examples.
func setHelp(cmd *cobra.Command, sets cliflag.NamedFlagSets, columns int) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s [flags]\n\nExamples:\n%s\n", cmd.Long, cmd.Use, cmd.Example)
		cliflag.PrintSections(out, sets, columns)
	})
}

// Run runs the scheduler until ctx ends. What keeps it from starting is
// returned as a *StartError, with nothing left running. started, if given, is
// called with the scheduler when it is set up.
func Run(ctx context.Context, opts *options.Options, started func(*scheduler.Scheduler)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if opts.ConfigFile != "" {
		// It is read again below. Here every error is told with the name of the
		// file, before anything is started.
		cfg, err := config.Load(opts.ConfigFile)
		if err != nil {
			return &StartError{err}
		}
		if warning := config.LegacyWarning(cfg.APIVersion); warning != "" {
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
		return nil // asked to end; the scheduler calls every end an error
	}
	return err
}

// ExitCode returns the exit code for an error of the command: 2 for what keeps
// it from starting, 1 for what ended it later.
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
