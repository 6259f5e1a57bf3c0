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

// counter shows how much of something has been read, if somebody is looking.
type counter struct {
	bar  *progressbar.ProgressBar
	kind string
}

// newCounter returns a counter: none if out is no terminal.
func newCounter(out io.Writer) *counter {
	c := &counter{}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		c.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(out), progressbar.OptionClearOnFinish(), progressbar.OptionShowCount())
	}
	return c
}

// show shows how many objects of a kind have been read.
func (c *counter) show(kind string, read, total int64) {
	if c.bar == nil {
		return
	}
	if kind != c.kind {
		c.kind = kind
		c.bar.Describe(kind)
	}
	c.bar.ChangeMax64(max(total, 1))
	_ = c.bar.Set64(read) // a bar that cannot be drawn is none
}

// end takes it away.
func (c *counter) end() {
	if c.bar != nil {
		_ = c.bar.Finish()
	}
}
