package replay

import (
	"fmt"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// Step is the interval in seconds at which usage is evaluated. The pods on a node and
// their usage at that second count until the next step.
const Step = 60

// Options configure a run.
type Options struct {
	// Config is the configuration of the scheduler.
	Config *internalconfig.KubeSchedulerConfiguration
	// Usage of the pods.
	Usage *recording.UsageModel
	// Metrics is how the load is measured.
	Metrics result.Metrics
	// Tail is how many seconds the run continues after the last arrival.
	Tail int64
	// Settle is the number of seconds at the start that no figure counts, except unschedulable pods. Pods that arrive in them, such as those
	// that ran before and are scheduled again, do not count as pods that wait.
	Settle int64
	// Autoscaler configures the autoscaler, nil for none.
	Autoscaler *scaling.Config
	// Record enables the recording of time series and node use. It does not
	// change the outcome.
	Record bool
	// Progress is called at every step with the simulated and the total seconds, unless
	// it is nil.
	Progress func(done, total int64)
	// Placed is called when a pod is scheduled, unless it is nil.
	Placed func(pod, node string)
}

// ParseMetrics parses a text such as interval=60,delay=60,window=900, which has the
// defaults. The interval is a multiple of Step.
func ParseMetrics(text string) (result.Metrics, error) {
	fields, err := spec.Parse(text)
	if err != nil {
		return result.Metrics{}, err
	}
	const day = 24 * 3600
	m := result.Metrics{
		IntervalSeconds: int64(fields.Int("interval", Step, Step, day)),
		DelaySeconds:    int64(fields.Int("delay", 60, 0, day)),
		WindowSeconds:   int64(fields.Int("window", 900, Step, day)),
	}
	if m.IntervalSeconds%Step != 0 {
		fields.Fail("interval", fmt.Sprint(m.IntervalSeconds), fmt.Sprintf("a multiple of %d", Step))
	}
	return m, fields.Err()
}
