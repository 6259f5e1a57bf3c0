package main

import (
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// reportMode lets others read a report: it is made to be shown.
const reportMode = 0o644

// reportFile returns the file of a report.
func (o *whatIfOptions) reportFile() newFile {
	return newFile{flag: "--report", path: o.report, force: o.force, mode: reportMode}
}

// checkReport says before anything runs why a report could not be written.
func (o *whatIfOptions) checkReport() error {
	if o.report == "" {
		return nil
	}
	return o.reportFile().check()
}

// writeReport writes the report, if one is wanted.
func (o *whatIfOptions) writeReport(r *result.Result) error {
	if o.report == "" {
		return nil
	}
	return o.reportFile().write(func(out io.Writer) error { return whatif.Write(out, r) })
}
