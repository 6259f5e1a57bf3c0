package whatif

import (
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	whatifreport "github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// reportMode makes a report readable by all users: it is written to be shared.
const reportMode = 0o644

// reportFile returns the file in --report.
func (o *whatIfOptions) reportFile() base.NewFile {
	return base.NewFile{Flag: "--report", Path: o.report, Force: o.force, Mode: reportMode}
}

// checkFiles returns an error if the report or the recording cannot be written, before any run.
func (o *whatIfOptions) checkFiles() error {
	if o.written != "" {
		if err := (base.NewFile{Flag: "--write-recording", Path: o.written, Force: o.force}).Check(); err != nil {
			return err
		}
	}
	if o.report == "" {
		return nil
	}
	return o.reportFile().Check()
}

// writeReport writes the report if --report is set.
func (o *whatIfOptions) writeReport(r *result.Result) error {
	if o.report == "" {
		return nil
	}
	return o.reportFile().Write(func(out io.Writer) error { return whatifreport.Write(out, r) })
}
