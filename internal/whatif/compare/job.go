package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// Job is one run, with one profile and seed. Jobs run in
// separate processes. Processes share no state, so that as many runs as CPUs can be
// executed in parallel without affecting each other.
type Job struct {
	Source  generate.Source    `json:"source"`
	Profile engine.NamedConfig `json:"profile"`
	Metrics result.Metrics     `json:"metrics"`
	Seed    uint64             `json:"seed"`
	// Saturation is as in replay.Options.
	Saturation float64 `json:"saturation,omitempty"`
	// Settle is the number of seconds at the start that figures do not count.
	Settle int64 `json:"settle,omitempty"`
	// Parts and Continued are as in replay.Options, and Before is what an earlier run left.
	Parts     int           `json:"parts,omitempty"`
	Continued bool          `json:"continued,omitempty"`
	Before    *result.State `json:"before,omitempty"`
	// Autoscaler is nil for none.
	Autoscaler *scaling.Config `json:"autoscaler,omitempty"`
	// Record enables the recording of time series, node use and decisions.
	Record bool `json:"record,omitempty"`
	// SaveMemory collects garbage more often: a process takes less memory, and more time.
	SaveMemory bool `json:"saveMemory,omitempty"`
}

// Run runs the job in this process. If ctx is canceled, the result covers the time until then.
func (j Job) Run(ctx context.Context, progress func(done, total int64)) (result.Run, error) {
	before := result.State{}
	if j.Before != nil {
		before = *j.Before
	}
	j.Source.Placed = before.Nodes
	in, err := j.Source.Input(j.Seed)
	if err != nil {
		return result.Run{}, err
	}
	// The defaults of the configuration depend on the version.
	if err := emulation.Use(in.Kubernetes); err != nil {
		return result.Run{}, err
	}
	config, err := j.Profile.Config()
	if err != nil {
		return result.Run{}, err
	}
	if j.Before == nil && engine.Learns(config) {
		if before.History, err = j.learn(ctx, &in, config); err != nil {
			return result.Run{}, err
		}
	}
	options := replay.Options{
		Config:     config,
		Metrics:    j.Metrics,
		Saturation: j.Saturation,
		Settle:     j.Settle,
		Parts:      j.Parts,
		Continued:  j.Continued,
		History:    before.History,
		Autoscaler: j.Autoscaler,
		Record:     j.Record,
		Progress:   progress,
	}
	run, err := replay.Run(ctx, in, options)
	run.Seed = j.Seed
	if j.Record && run.Recorded != nil {
		run.Recorded.Part = in.Part.Describe()
		run.Recorded.Part.Source = sourceOf(&in)
	}
	return run, err
}

// learn returns what the scheduler of the job would have learned before the part of the recording that is the input, nil if nothing was
// recorded before.
func (j *Job) learn(ctx context.Context, in *recording.Input, config *internalconfig.KubeSchedulerConfiguration) ([]predict.Past, error) {
	earlier := j.Source
	var ok bool
	if earlier.Source, ok = j.Source.Earlier(in.Part); !ok {
		return nil, nil
	}
	before, err := earlier.Input(j.Seed)
	if err != nil {
		return nil, err
	}
	run, err := replay.Run(ctx, before, replay.Options{Config: config, Metrics: j.Metrics, Continued: true})
	if err != nil {
		return nil, err
	}
	return run.Recorded.Left.History, nil
}

// Run runs jobs, as Pool.Run does, and returns their runs in the same order. If ctx is canceled, runs that were not completed are nil
// or interrupted.
type Run func(ctx context.Context, jobs []Job) ([]*result.Run, error)

// WithSaturation returns a Run of jobs with a fraction in place of their Saturation.
func WithSaturation(fraction float64, run Run) Run {
	return func(ctx context.Context, jobs []Job) ([]*result.Run, error) {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Saturation = fraction
		}
		return run(ctx, jobs)
	}
}

// InProcess is a Run in this process, one job after the other.
func InProcess(ctx context.Context, jobs []Job) ([]*result.Run, error) {
	runs := make([]*result.Run, len(jobs))
	for i := range jobs {
		run, err := jobs[i].Run(ctx, nil)
		if err != nil {
			return nil, err
		}
		runs[i] = &run
	}
	return runs, nil
}

// message is written by a process: its progress, and finally the run or the error.
type message struct {
	Done  int64       `json:"done,omitempty"`
	Total int64       `json:"total,omitempty"`
	Run   *result.Run `json:"run,omitempty"`
	Error string      `json:"error,omitempty"`
}

// Serve reads a job from in, runs it, and writes messages to out. It interrupts the run
// when in is closed.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	var job Job
	if err := decoder.Decode(&job); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	tuneRuntime(job.SaveMemory)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // until it is closed
		cancel()
	}()
	reported := int64(0)
	run, err := job.Run(ctx, func(done, total int64) {
		if percent := 100 * done / max(total, 1); percent > reported {
			reported = percent
			_ = encoder.Encode(message{Done: done, Total: total}) // an error recurs in the last message
		}
	})
	if err != nil {
		return encoder.Encode(message{Error: err.Error()})
	}
	return encoder.Encode(message{Run: &run})
}

// memoryLimit is the soft memory limit, above which garbage is collected more often.
const memoryLimit = 2 << 30

// tuneRuntime configures the process for one run: unless it saves memory, garbage is collected less often, and
// loggers have no names, since nothing is logged.
func tuneRuntime(saveMemory bool) {
	if saveMemory {
		debug.SetGCPercent(30)
	} else {
		debug.SetGCPercent(200)
	}
	debug.SetMemoryLimit(memoryLimit)
	klog.EnableContextualLogging(false)
}

// Pool runs jobs in separate processes.
type Pool struct {
	// Command returns a process that calls Serve.
	Command func(ctx context.Context) *exec.Cmd
	// Processes is the number of parallel processes, at least 1.
	Processes int
	// Progress is called from several goroutines with the progress of a job, unless it
	// is nil.
	Progress func(job int, done, total int64)
}

// stopTimeout is how long an interrupted process may take to write its run.
const stopTimeout = 30 * time.Second

// Run runs jobs and returns their runs in the same order. If ctx is canceled, current runs cover
// the time until then, and runs that were not started are nil.
func (p Pool) Run(ctx context.Context, jobs []Job) ([]*result.Run, error) {
	runs := make([]*result.Run, len(jobs))
	// An error cancels the other runs.
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(p.Processes, 1))
	for i := range jobs {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			var err error
			if groupCtx.Err() == nil {
				runs[i], err = p.run(groupCtx, i, jobs[i])
			}
			return err
		})
	}
	return runs, group.Wait()
}

// run runs one job.
func (p Pool) run(ctx context.Context, number int, job Job) (*result.Run, error) {
	// Closing its input stops a process. It is killed only after the timeout.
	cmd := p.Command(ctx)
	cmd.WaitDelay = stopTimeout
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Cancel = stdin.Close
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the process of a run: %w", err)
	}
	_ = json.NewEncoder(stdin).Encode(job) // on failure the process reports the error
	last := p.readMessages(number, stdout)
	_ = stdin.Close() // the process has ended or must end
	exit := cmp.Or(cmd.Wait(), io.ErrUnexpectedEOF)
	switch {
	case last.Error != "":
		return nil, fmt.Errorf("profile %s, seed %d: %s", job.Profile.Name, job.Seed, last.Error)
	case last.Run == nil && ctx.Err() == nil:
		return nil, fmt.Errorf("profile %s, seed %d: the run ended without a result (%w) %s",
			job.Profile.Name, job.Seed, exit, reasonOf(stderr.String()))
	default:
		return last.Run, nil
	}
}

// readMessages reads the messages of a process, and returns the last message: the run or the error,
// or neither if the process ended before.
func (p Pool) readMessages(number int, stdout io.Reader) message {
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

// reasonOf returns why a process ended: the line of its standard error that a crash begins with, otherwise the last line.
func reasonOf(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}
