package replay

import (
	"fmt"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
)

// Step is how often use is looked at, in seconds: what is on a node at that
// instant, and what it uses then, counts until the next one.
const Step = 60

// Options say how a run goes.
type Options struct {
	// Config is the configuration of the scheduler.
	Config *internalconfig.KubeSchedulerConfiguration
	// Usage is what the pods use.
	Usage *usage.Model
	// Metrics is how the scheduler gets to know of it.
	Metrics Metrics
	// Tail is for how many seconds the run goes on after the last pod has come.
	Tail int64
	// Autoscaler adds and removes nodes, unless it is nil.
	Autoscaler *Autoscaler
	// Course: how the run goes over time is recorded, what its nodes use, and where
	// some of its pods go. It does not change where they go.
	Course bool
	// Progress, if there is one, is called now and then with the seconds that have
	// passed and how many there are.
	Progress func(done, total int64)
	// Placed, if there is one, is called with every pod that finds a node, in the
	// order in which they do.
	Placed func(pod, node string)
}

// Metrics say how load is measured. All in seconds.
type Metrics struct {
	// Interval is how often, a multiple of Step.
	Interval int64
	// Delay is how old a reading is when the scheduler gets it.
	Delay int64
	// Window is what means and deviations are over.
	Window int64
}

// ParseMetrics reads a text such as interval=60,delay=60,window=900; these are
// also the defaults of what it leaves out.
func ParseMetrics(text string) (Metrics, error) {
	fields, err := spec.Parse(text)
	if err != nil {
		return Metrics{}, err
	}
	const day = 24 * 3600
	m := Metrics{
		Interval: int64(fields.Int("interval", Step, Step, day)),
		Delay:    int64(fields.Int("delay", 60, 0, day)),
		Window:   int64(fields.Int("window", 900, Step, day)),
	}
	if m.Interval%Step != 0 {
		fields.Fail("interval", fmt.Sprint(m.Interval), fmt.Sprintf("a multiple of %d", Step))
	}
	return m, fields.Err()
}
