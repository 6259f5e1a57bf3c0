package autoscaler

// Loop has the settings that apply to all groups. Times are in seconds.
type Loop struct {
	// Interval between passes.
	Interval int64 `json:"interval"`
	// Idle is how long a node must be unneeded before it is removed.
	Idle int64 `json:"idle"`
	// AfterAdd is how long no node is removed after one was added.
	AfterAdd int64 `json:"afterAdd"`
	// Utilization is the threshold below which a node can be unneeded.
	Utilization float64 `json:"utilization"`
}

// DefaultLoop has the defaults of Cluster Autoscaler: scan-interval, scale-down-unneeded-time, scale-down-delay-after-add and
// scale-down-utilization-threshold.
var DefaultLoop = Loop{Interval: 10, Idle: 600, AfterAdd: 600, Utilization: 0.5}
