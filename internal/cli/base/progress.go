package base

import (
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// newBar returns a progress bar that disappears at its end. It prints nothing unless out is a terminal.
func newBar(out io.Writer, total int64, options ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, append(options, progressbar.OptionSetVisibility(isTerminal(out)),
		progressbar.OptionSetWriter(out), progressbar.OptionClearOnFinish())...)
}

// RunProgress is a progress bar of several concurrent runs.
type RunProgress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar
	// permille is the progress of each run.
	permille []int64
}

// NewRunProgress shows a progress bar of a number of runs, at once. It prints nothing unless out is a
// terminal.
func NewRunProgress(out io.Writer, runs int) *RunProgress {
	bar := newBar(out, int64(runs)*1000, progressbar.OptionSetDescription("running"),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth())
	_ = bar.RenderBlank() // the first runs report only after they have read their input
	return &RunProgress{bar: bar, permille: make([]int64, runs)}
}

// Show updates the progress of one run.
func (p *RunProgress) Show(run int, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.permille[run] = 1000 * done / max(total, 1)
	sum := int64(0)
	for _, permille := range p.permille {
		sum += permille
	}
	_ = p.bar.Set64(sum) // progress is not worth failing for
}

// End removes the bar.
func (p *RunProgress) End() { _ = p.bar.Finish() }

// ReadProgress shows how many objects of each kind have been read.
type ReadProgress struct {
	bar  *progressbar.ProgressBar
	kind string
}

// NewReadProgress returns a progress bar for reading objects. It prints nothing unless out is a
// terminal.
func NewReadProgress(out io.Writer) *ReadProgress {
	return &ReadProgress{bar: newBar(out, -1, progressbar.OptionShowCount())}
}

// Show updates how many objects of a kind have been read.
func (p *ReadProgress) Show(kind string, read, total int64) {
	if kind != p.kind {
		p.kind = kind
		p.bar.Describe(kind)
	}
	p.bar.ChangeMax64(max(total, 1))
	_ = p.bar.Set64(read) // progress is not worth failing for
}

// End removes the bar.
func (p *ReadProgress) End() { _ = p.bar.Finish() }
