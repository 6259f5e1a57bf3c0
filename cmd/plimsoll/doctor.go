package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// doctorOptions are the flags of plimsoll doctor.
type doctorOptions struct {
	kubeconfig string
	output     output
	timeout    time.Duration
}

func newDoctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Is all well with Plimsoll in this cluster, and if not, what to do?",
		Long: `Examine a cluster: versions, clocks, what runs of Plimsoll and who leads, its rights
and CRDs, whether load is fresh and is of the nodes that there are, whether an
autoscaler keeps the buffers of slack policies, and what policies and placements say
of themselves. Each finding comes with what to do. Nothing is changed.

The exit code is 1 if there is a problem.`,
		Example: `  plimsoll doctor

  # What is not as it should be, for a program.
  plimsoll doctor -o json | jq '.[] | select(.level != "ok")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "access to the cluster (default the pod's own, $KUBECONFIG or ~/.kube/config)")
	o.output.add(cmd)
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "how long all checks may take")
	_ = cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

func (o *doctorOptions) run(ctx context.Context, out io.Writer) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	config, err := kube.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	cluster, err := doctor.New(config, version.Get().Kubernetes)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	findings, err := cluster.Examine(ctx, time.Now())
	if err != nil {
		return &failure{err}
	}
	if err := o.output.print(out, findings, func(out io.Writer) { printFindings(out, findings) }); err != nil {
		return err
	}
	problems := 0
	for _, f := range findings {
		if f.Level == doctor.Problem {
			problems++
		}
	}
	if problems > 0 {
		return &failure{fmt.Errorf("problems: %d", problems)}
	}
	return nil
}

func printFindings(out io.Writer, findings []doctor.Finding) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Options.SeparateRows = true
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft}, {Number: 4, WidthMax: 50, WidthMaxEnforcer: text.WrapSoft}})
	t.AppendHeader(table.Row{"check", "", "finding", "what to do"})
	for _, f := range findings {
		t.AppendRow(table.Row{f.Check, f.Level, f.Message, f.Fix})
	}
	t.Render()
}
