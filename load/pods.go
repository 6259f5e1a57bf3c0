package load

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"
)

// MaxPods is the maximum number of pods in a reading. It is above the 150,000 pods that Kubernetes supports in a
// cluster, so that a reading needs at most about 30 MB.
const MaxPods = 200_000

// PodUsage is the usage of one pod: the sum of its containers.
type PodUsage struct {
	// Namespace and Name identify the pod.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// CPU is in millicores, the mean over the window of the reading.
	CPU float64 `json:"cpuMillicores"`
	// Memory is in bytes: the working set, which the kubelet compares with limits.
	Memory float64 `json:"memoryBytes"`
}

// Valid reports whether both amounts are finite and not negative.
func (u PodUsage) Valid() bool {
	return u.CPU >= 0 && u.Memory >= 0 && !math.IsInf(u.CPU, 1) && !math.IsInf(u.Memory, 1)
}

// Compare orders the usage of pods by namespace and name.
func (u PodUsage) Compare(other PodUsage) int {
	return cmp.Or(cmp.Compare(u.Namespace, other.Namespace), cmp.Compare(u.Name, other.Name))
}

// PodReading is the usage of all pods at one time.
type PodReading struct {
	// Source is the display name of the source, such as Prometheus.
	Source string
	// Time is the end of the window.
	Time time.Time
	// Window is the time that the CPU usage covers.
	Window time.Duration
	// Pods is the usage by pod. No pod occurs twice.
	Pods []PodUsage
	// Rejected is the number of pods that were ignored because their values are missing or invalid (not a number,
	// negative, infinite).
	Rejected int
}

// PodSource reads the usage of all pods.
type PodSource interface {
	// ReadPods returns a new reading. It returns when ctx is done. An *Error states the kind of failure.
	ReadPods(ctx context.Context) (PodReading, error)
	// String returns the name and the address of the source, for messages.
	String() string
}

// PastPodSource is a PodSource that also has readings of the past.
type PastPodSource interface {
	PodSource
	// ReadPodsAt returns the reading at a time. Its error has the reason Empty if the source has no reading at that time.
	ReadPodsAt(ctx context.Context, at time.Time) (PodReading, error)
}

// PodStore keeps the newest usage of pods: one reading of at most MaxPods pods.
type PodStore struct{ newest[PodReading] }

// NewPodStore returns an empty store that returns no reading older than maxAge. now is the clock; time.Now if nil.
func NewPodStore(maxAge time.Duration, now func() time.Time) *PodStore {
	s := &PodStore{}
	s.init(maxAge, now)
	return s
}

// Put stores a reading, unless it has more than MaxPods pods, or its time is in the future or before the time of the
// previous reading. A previous reading whose time is in the future, because the clock was set back, does not count. Callers
// must not modify the reading afterwards.
func (s *PodStore) Put(reading PodReading) error {
	_, err := s.previous(reading.Time)
	if len(reading.Pods) > MaxPods {
		err = &Error{Reason: TooLarge, Err: fmt.Errorf("reading has %d pods, maximum is %d", len(reading.Pods), MaxPods)}
	}
	if err == nil {
		s.publish(&entry[PodReading]{value: &reading, at: reading.Time, until: reading.Time.Add(s.maxAge)})
	}
	s.recordReading(err, reading.Rejected, nil)
	return err
}

// Run reads the source at once and then every interval, until ctx is done, with the intervals and reports of Store.Run.
// Readings of pods are complete or fail, so that State.Partial is never set.
func (s *PodStore) Run(ctx context.Context, source PodSource, interval time.Duration, report func(State)) {
	s.run(ctx, interval, func(ctx context.Context) (bool, error) { return false, s.read(ctx, source) }, report)
}

// read reads the source once.
func (s *PodStore) read(ctx context.Context, source PodSource) error {
	began := time.Now()
	reading, err := source.ReadPods(ctx)
	if err = s.recordRead(began, reading.Time, err); err == nil {
		err = s.Put(reading)
	}
	if err != nil {
		return fmt.Errorf("reading usage of pods from %s: %w", source, err)
	}
	return nil
}
