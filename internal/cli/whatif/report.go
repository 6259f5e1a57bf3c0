package whatif

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// formatHTML is an output format that only these commands have.
const formatHTML = "html"

// resultOptions are the flags for output and evaluation of a result.
type resultOptions struct {
	failOn []string
	// conditions are the parsed values of failOn.
	conditions []condition
	output     base.Output
	report     base.NewFile
}

func (o *resultOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.failOn, "fail-on", nil, "exit with code 3 if a figure exceeds a number, as in 'overloadMinutes>10', or "+
		"clearly differs from the baseline, as in 'difference.overloadMinutes>0'; may be repeated")
	o.output.AddFlag(cmd, formatHTML, base.FormatMarkdown)
	o.report = base.NewFile{Flag: "--report", Kind: base.HTMLPage, Mode: 0o644} // written to be shared
	flags.StringVar(&o.report.Path, "report", "", "also write a self-contained HTML report to this file")
	flags.BoolVar(&o.report.Force, "force", false, "replace existing files")
}

// requirements are the flags with which runs have figures.
var requirements = map[result.Requirement]string{result.WithAutoscaler: "--autoscaler", result.WithSlack: "--autoscaler and --slack"}

// validate returns an error for an invalid flag, for a figure that requires more than met, or if the report cannot be written. It is
// called before any run.
func (o *resultOptions) validate(met result.Requirement) error {
	for _, text := range o.failOn {
		c, err := parseCondition(text)
		if err != nil {
			return fmt.Errorf("--fail-on: %w", err)
		}
		if d, _ := result.FigureByName(c.figure); d.Requires > met {
			return fmt.Errorf("--fail-on: %s: requires %s", c.figure, requirements[d.Requires])
		}
		o.conditions = append(o.conditions, c)
	}
	return o.report.Check()
}

// finish writes the report of a result and prints the result: last, since the reader of a pipe may end this process. It returns an error if
// the result is incomplete or a condition of --fail-on is true.
func (o *resultOptions) finish(out io.Writer, r *result.Result) error {
	written := o.report.Write(func(out io.Writer) error { return report.Write(out, r) })
	if err := errors.Join(written, o.print(out, r)); err != nil {
		return base.Failure(err)
	}
	if r.Interrupted {
		return base.Failure(errors.New("interrupted: the results are incomplete and marked"))
	}
	return o.checkFailOn(r)
}

func (o *resultOptions) print(out io.Writer, r *result.Result) error {
	if o.output.Format == formatHTML {
		return report.Write(out, r)
	}
	return o.output.Print(out, r, func(out io.Writer) { Print(out, &o.output, &report.Document{Result: r}) })
}

// checkFailOn returns an error if a condition of --fail-on is true.
func (o *resultOptions) checkFailOn(r *result.Result) error {
	for _, c := range o.conditions {
		profile, isTrue, err := c.evaluate(&r.Scenario)
		if err != nil {
			return fmt.Errorf("--fail-on: %w", err)
		}
		if isTrue {
			return base.WithExitCode(base.ExitCondition,
				fmt.Errorf("--fail-on: %s with the profile %s and %s", c.text, profile, r.Scenario.Description()))
		}
	}
	return nil
}
