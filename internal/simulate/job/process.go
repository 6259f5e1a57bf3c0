package job

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// message is what a process says: how far it is, and in the end the run or what
// went wrong.
type message struct {
	Done  int64       `json:"done,omitempty"`
	Total int64       `json:"total,omitempty"`
	Run   *result.Run `json:"run,omitempty"`
	Error string      `json:"error,omitempty"`
}

// Serve reads a job, runs it, and says what becomes of it. When in ends after the
// job, whoever wanted it is gone or wants no more, and the run is cut short.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	var job Job
	if err := decoder.Decode(&job); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	beFast()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // only its end is of interest
		cancel()
	}()
	said := int64(0)
	run, err := job.Run(ctx, func(done, total int64) {
		if percent := 100 * done / max(total, 1); percent > said {
			said = percent
			_ = encoder.Encode(message{Done: done, Total: total}) // the end tells if nobody listens
		}
	})
	if err != nil {
		return encoder.Encode(message{Error: err.Error()})
	}
	return encoder.Encode(message{Run: &run})
}

// memoryLimit is from where on a process rather spends time than memory. A run
// that needs more has it.
const memoryLimit = 2 << 30

// beFast sets the process up for one run: it collects garbage less often than
// programs do that are to stay small, and names no loggers, since nothing is logged.
func beFast() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(memoryLimit)
	klog.EnableContextualLogging(false)
}

// Pool runs jobs in processes.
type Pool struct {
	// Command makes a process that calls Serve.
	Command func(ctx context.Context) *exec.Cmd
	// Processes is how many run at a time, at least 1.
	Processes int
	// Progress, if there is one, is called from several goroutines with how far the
	// run of a job is.
	Progress func(job int, done, total int64)
}

// patience is how long a process that is to stop may take to say what it has.
const patience = 30 * time.Second

// Run runs jobs and returns what came of them, in their order. If ctx ends before
// they do, the runs that were going on are of the time until then, and those that
// were not begun are nil.
func (p Pool) Run(ctx context.Context, jobs []Job) ([]*result.Run, error) {
	runs := make([]*result.Run, len(jobs))
	// A run that fails ends the others; nobody wants them then.
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(max(p.Processes, 1))
	for i := range jobs {
		if working.Err() != nil {
			break
		}
		group.Go(func() error {
			var err error
			if working.Err() == nil {
				runs[i], err = p.run(working, i, jobs[i])
			}
			return err
		})
	}
	return runs, group.Wait()
}

// run runs one job.
func (p Pool) run(ctx context.Context, number int, job Job) (*result.Run, error) {
	// Ending the input is what stops a process; only if that does not, it is killed.
	cmd := p.Command(ctx)
	cmd.WaitDelay = patience
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Cancel = stdin.Close
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a run: %w", err)
	}
	_ = json.NewEncoder(stdin).Encode(job) // if that fails, the process says why
	last := p.listen(number, stdout)
	_ = stdin.Close() // it has ended, or has to
	ended := cmd.Wait()
	switch {
	case last.Error != "":
		return nil, fmt.Errorf("profile %s, seed %d: %s", job.Profile.Name, job.Seed, last.Error)
	case last.Run == nil && ctx.Err() == nil:
		return nil, fmt.Errorf("profile %s, seed %d: the run ended without a result (%w) %s", job.Profile.Name, job.Seed, ended, lastLine(complaints.String()))
	default:
		return last.Run, nil
	}
}

// listen reads what a process says, and returns the last of it: the run or what
// went wrong, or nothing if it ended before that.
func (p Pool) listen(number int, stdout io.Reader) message {
	decoder := json.NewDecoder(stdout)
	for {
		var m message
		switch err := decoder.Decode(&m); {
		case err != nil:
			return message{}
		case m.Error != "" || m.Run != nil:
			return m
		case p.Progress != nil:
			p.Progress(number, m.Done, m.Total)
		}
	}
}

// lastLine returns the last line that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
