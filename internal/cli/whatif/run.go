package whatif

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

func (o *whatIfOptions) run(cmd *cobra.Command) error {
	if err := o.validate(cmd); err != nil {
		return err
	}
	if err := o.parse(cmd); err != nil {
		return err
	}
	o.Command = commandLine(cmd)
	if len(o.Profiles) > 1 {
		if err := o.rescheduleIfPlaced(cmd); err != nil {
			return err
		}
	} else if i := slices.IndexFunc(o.conditions, func(c condition) bool { return c.difference }); i >= 0 {
		return fmt.Errorf("--fail-on: difference.%s: requires a second profile", o.conditions[i].figure)
	}
	// If interrupted, the command still prints the result, without runs.
	plan, err := compare.NewPlan(context.WithoutCancel(cmd.Context()), o.Options)
	if err != nil {
		return err
	}
	r, err := plan.Run(cmd.Context(), runJobs(cmd.ErrOrStderr()))
	if err != nil {
		return base.Failure(err)
	}
	o.warnOfUsage(cmd, r)
	return o.finish(cmd.OutOrStdout(), r)
}

// warnOfUsage warns if --usage is set and usage is recorded, to which the flag does not apply.
func (o *whatIfOptions) warnOfUsage(cmd *cobra.Command, r *result.Result) {
	pods, known := r.Source.Pods, r.Source.UsageKnown
	switch {
	case !cmd.Flags().Changed("usage") || known == 0 || !o.isOverTime():
	case known == pods:
		o.Warn("--usage: has no effect: the usage of all pods is recorded")
	default:
		o.Warn(fmt.Sprintf("--usage: the usage of %s is not recorded: the others use what was recorded",
			format.Part(pods-known, pods, "pod")))
	}
}

// rescheduleIfPlaced makes all pods of manifests and recordings arrive again if all have a node, unless --reschedule is set.
func (o *whatIfOptions) rescheduleIfPlaced(cmd *cobra.Command) error {
	if !o.hasObjects() || cmd.Flags().Changed("reschedule") {
		return nil
	}
	return o.RescheduleIfPlaced()
}

// outputFlags do not change the result.
var outputFlags = []string{"output", "report", "force", "fail-on", "shard", "write", "no-headers"}

// commandLine returns the command with its flags, quoted for a shell, without flags that do not change the result.
func commandLine(cmd *cobra.Command) string {
	words := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(outputFlags, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if f.Value.Type() == "bool" {
				words = append(words, "--"+f.Name+"="+value)
				continue
			}
			words = append(words, "--"+f.Name, shellQuote(value))
		}
	})
	return strings.Join(words, " ")
}

// shellQuote returns a word in single quotes if a shell would not take it as it is.
func shellQuote(word string) string {
	if word != "" && strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789_./:=,%+-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// runJobs returns a function that runs jobs in processes, as many at a time as there are CPUs, and shows their progress.
func runJobs(progress io.Writer) compare.Run {
	return func(ctx context.Context, jobs []compare.Job) ([]*result.Run, error) {
		bar := base.NewRunProgress(progress, len(jobs))
		defer bar.End()
		return compare.Pool{Command: selfCommand, Processes: runtime.GOMAXPROCS(0), Progress: bar.Show}.Run(ctx, jobs)
	}
}

// parse parses the flags, and reads standard input if it is the input.
func (o *whatIfOptions) parse(cmd *cobra.Command) error {
	o.Source.Tail, o.Warn = int64(o.tail.Seconds()), base.Warnings(cmd.ErrOrStderr())
	o.Metrics = replay.DefaultMetrics
	if o.scenario != "" {
		if err := o.readScenario(cmd.Flags().Changed("usage")); err != nil {
			return fmt.Errorf("--scenario: %w", err)
		}
	}
	if _, err := o.Source.UsageSpec(); err != nil {
		return err
	}
	if err := o.parseScale(); err != nil {
		return err
	}
	return o.readStdin(cmd.InOrStdin())
}

// RunCommand is the argument of a process that runs one job.
const RunCommand = "run-one"

// lowPriorityFlag is the flag of RunCommand for a process that yields to all others.
const lowPriorityFlag = "low-priority"

// RunLowPriority runs jobs as compare.Pool does, one at a time in processes that save memory and yield to all others.
func RunLowPriority(ctx context.Context, jobs []compare.Job) ([]*result.Run, error) {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		jobs[i].SaveMemory = true
	}
	return compare.Pool{Processes: 1, Command: func(ctx context.Context) *exec.Cmd {
		cmd := selfCommand(ctx)
		cmd.Args = append(cmd.Args, "--"+lowPriorityFlag)
		return cmd
	}}.Run(ctx, jobs)
}

// NewRunCommand returns the hidden command that runs one job.
func NewRunCommand() *cobra.Command {
	lowPriority := false
	cmd := &cobra.Command{
		Use:    RunCommand,
		Short:  "Run the job on standard input (for plimsoll itself)",
		Hidden: true,
		Args:   base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lowPriority {
				if err := lowerPriority(); err != nil {
					return base.Failure(err)
				}
			}
			return compare.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&lowPriority, lowPriorityFlag, false, "yield to all other processes")
	return cmd
}

// selfCommand is this program, started to run a job.
func selfCommand(ctx context.Context) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	cmd := exec.CommandContext(ctx, program, RunCommand)
	cmd.Args[0] = os.Args[0]
	return cmd
}
