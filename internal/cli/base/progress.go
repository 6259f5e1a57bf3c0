package base

import (
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
)

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
	p := &RunProgress{permille: make([]int64, runs)}
	if isTerminal(out) {
		p.bar = progressbar.NewOptions64(int64(runs)*1000,
			progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("running"),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth())
		_ = p.bar.RenderBlank() // the first runs report only after they have read their input
	}
	return p
}

// Show updates the progress of one run.
func (p *RunProgress) Show(run int, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.permille[run] = 1000 * done / max(total, 1)
	if p.bar == nil {
		return
	}
	sum := int64(0)
	for _, permille := range p.permille {
		sum += permille
	}
	_ = p.bar.Set64(sum) // progress is not worth failing for
}

// End removes the bar.
func (p *RunProgress) End() { finish(p.bar) }

// ReadProgress shows how many objects of each kind have been read.
type ReadProgress struct {
	bar  *progressbar.ProgressBar
	kind string
}

// NewReadProgress returns a progress bar for reading objects. It prints nothing unless out is a
// terminal.
func NewReadProgress(out io.Writer) *ReadProgress {
	p := &ReadProgress{}
	if isTerminal(out) {
		p.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(out), progressbar.OptionClearOnFinish(), progressbar.OptionShowCount())
	}
	return p
}

// Show updates how many objects of a kind have been read.
func (p *ReadProgress) Show(kind string, read, total int64) {
	if p.bar == nil {
		return
	}
	if kind != p.kind {
		p.kind = kind
		p.bar.Describe(kind)
	}
	p.bar.ChangeMax64(max(total, 1))
	_ = p.bar.Set64(read) // progress is not worth failing for
}

// End removes the bar.
func (p *ReadProgress) End() { finish(p.bar) }

func finish(bar *progressbar.ProgressBar) {
	if bar != nil {
		_ = bar.Finish()
	}
}
