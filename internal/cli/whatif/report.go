package whatif

import (
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	whatifreport "github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// reportMode lets others read a report: it is made to be shown.
const reportMode = 0o644

// reportFile returns the file of a report.
func (o *whatIfOptions) reportFile() base.NewFile {
	return base.NewFile{Flag: "--report", Path: o.report, Force: o.force, Mode: reportMode}
}

// checkReport says before anything runs why a report could not be written.
func (o *whatIfOptions) checkReport() error {
	if o.report == "" {
		return nil
	}
	return o.reportFile().Check()
}

// writeReport writes the report, if one is wanted.
func (o *whatIfOptions) writeReport(r *result.Result) error {
	if o.report == "" {
		return nil
	}
	return o.reportFile().Write(func(out io.Writer) error { return whatifreport.Write(out, r) })
}
