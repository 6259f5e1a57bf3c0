package replay

import (
	"fmt"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

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
	// Settle is the number of seconds at the start that no figure counts, except unschedulable pods. Pods that arrive in them, such as
	// pods that ran before and are scheduled again, do not count as pods that wait.
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

// DefaultMetrics is how the load is measured by default.
var DefaultMetrics = result.Metrics{IntervalSeconds: Step, DelaySeconds: 60, WindowSeconds: 900}

// ValidateMetrics returns an error that names the field of an invalid value.
func ValidateMetrics(m result.Metrics) error {
	const day = 24 * 3600
	switch {
	case m.IntervalSeconds < Step || m.IntervalSeconds > day || m.IntervalSeconds%Step != 0:
		return fmt.Errorf("intervalSeconds: invalid value %d: must be a multiple of %d up to %d", m.IntervalSeconds, Step, day)
	case m.DelaySeconds < 0 || m.DelaySeconds > day:
		return fmt.Errorf("delaySeconds: invalid value %d: must be from 0 to %d", m.DelaySeconds, day)
	case m.WindowSeconds < Step || m.WindowSeconds > day:
		return fmt.Errorf("windowSeconds: invalid value %d: must be from %d to %d", m.WindowSeconds, Step, day)
	}
	return nil
}
