package main

import (
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far all runs together are, if somebody is looking.
type progress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar
	// done is how far each run is, in thousandths.
	done []int64
}

// newProgress returns the bar for so many runs: none if out is no terminal.
func newProgress(out io.Writer, runs int) *progress {
	p := &progress{done: make([]int64, runs)}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions64(int64(runs)*1000,
			progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("running"),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth())
	}
	return p
}

// show takes in how far a run is.
func (p *progress) show(run int, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[run] = 1000 * done / max(total, 1)
	if p.bar == nil {
		return
	}
	sum := int64(0)
	for _, done := range p.done {
		sum += done
	}
	_ = p.bar.Set64(sum) // a bar that cannot be drawn is none
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
