package prediction

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/load"
)

const (
	// HistoryKey is the key of the history in the binary data of the ConfigMap.
	HistoryKey = "history.json.gz"
	// saveInterval is the shortest time between two saves. All replicas of a scheduler together save once within it.
	saveInterval = 5 * time.Minute
	// rebuildSpan is the length of the period before the start whose usage of pods is read again, and rebuildStep the time
	// between two of these readings.
	rebuildSpan = 24 * time.Hour
	rebuildStep = 30 * time.Minute
	// requestTimeout is the longest duration of one reading, and of one save.
	requestTimeout = 10 * time.Second
	// maxSkew is the largest difference of the clocks of replicas: a history of the future would outweigh the pods that run.
	maxSkew = 5 * time.Minute
	// margin is subtracted from the interval when the age of another replica's save is checked.
	margin = 30 * time.Second
)

// Learner learns the usage of workloads. Its methods are safe for concurrent use.
type Learner interface {
	// Replay learns from a past reading. Readings come in the order of their times, before the first current one.
	Replay(reading *load.PodReading)
	// Workloads returns the history of all workloads, in any order.
	Workloads() []predict.Past
	// Known returns the number of workloads whose usage is known, and the time of the newest usage, zero if there is none.
	Known() (workloads int, newest time.Time)
	// Restore adds the history that a previous process saved at an earlier time, and returns how many impossible workloads it has ignored.
	Restore(workloads []predict.Past, saved, now time.Time) (ignored int)
}

// HistoryOptions configure a HistoryKeeper.
type HistoryOptions struct {
	Learner Learner
	// Past has the past usage of pods, nil if the source has none.
	Past load.PastPodSource
	// ConfigMaps is the client for the namespace of the ConfigMap, and Name the name of the ConfigMap. Nothing is saved if
	// ConfigMaps is nil.
	ConfigMaps corev1client.ConfigMapInterface
	Name       string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// HistoryKeeper keeps the history of a learner over restarts. Its methods are safe for concurrent use.
type HistoryKeeper struct {
	options HistoryOptions

	// mu is locked during requests to the API server.
	mu sync.Mutex
	// isRestored is set if the learner has the content of the ConfigMap, so that overwriting the ConfigMap loses nothing.
	isRestored bool

	// saved has the time, the size and the number of omitted workloads of the last save.
	saved atomic.Pointer[History]
	// ignored is the number of impossible workloads of the restored history.
	ignored atomic.Int64
}

// NewHistoryKeeper returns a keeper.
func NewHistoryKeeper(options HistoryOptions) *HistoryKeeper {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &HistoryKeeper{options: options}
}

// State returns the state of the history. It does not wait for a save.
func (k *HistoryKeeper) State() History {
	state := History{}
	if saved := k.saved.Load(); saved != nil {
		state = *saved
	}
	state.Workloads, state.Updated = k.options.Learner.Known()
	state.Ignored = int(k.ignored.Load())
	return state
}

// Start restores the history: from past readings if there are any, otherwise from the ConfigMap. Failures are logged, and the
// history is then empty. From then on the history is saved before the scheduler of the context stops.
func (k *HistoryKeeper) Start(ctx context.Context) {
	logger := klog.FromContext(ctx).WithName("history")
	if k.options.ConfigMaps != nil {
		defer beforeShutdown(ctx, func(ctx context.Context) { k.trySave(ctx, logger, 0) })
	}
	if k.options.Past != nil {
		readings, err := rebuild(ctx, k.options.Past, k.options.Now(), rebuildSpan, rebuildStep, k.options.Learner.Replay)
		if err != nil {
			logger.Error(err, "The history of the usage of workloads could not be rebuilt completely", "readings", readings)
		}
		if readings > 0 {
			workloads, _ := k.options.Learner.Known()
			logger.Info("Rebuilt the history of the usage of workloads", "readings", readings, "workloads", workloads)
			k.mu.Lock()
			defer k.mu.Unlock()
			k.isRestored = true
			return
		}
	}
	if k.options.ConfigMaps == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := k.restored(ctx, logger); err != nil {
		logger.Error(err, "The history of the usage of workloads could not be read")
	}
}

// rebuild reads the usage of pods during a span before now in steps, and calls observe with each reading, the
// oldest first. It keeps one reading in memory at a time. It returns the number of readings. Times without data are left out;
// any other error is returned at once.
func rebuild(
	ctx context.Context, source load.PastPodSource, now time.Time, span, step time.Duration, observe func(*load.PodReading),
) (readings int, err error) {
	for at := now.Add(-span); at.Before(now); at = at.Add(step) {
		readCtx, cancel := context.WithTimeout(ctx, requestTimeout)
		reading, err := source.ReadPodsAt(readCtx, at)
		cancel()
		switch {
		case err == nil:
			observe(&reading)
			readings++
		case load.ReasonOf(err) != load.Empty:
			return readings, fmt.Errorf("reading past usage of pods from %s: %w", source, err)
		}
	}
	return readings, nil
}

// Run saves the history every five minutes until ctx is done. It returns at once if nothing is saved.
func (k *HistoryKeeper) Run(ctx context.Context) {
	if k.options.ConfigMaps == nil {
		return
	}
	logger := klog.FromContext(ctx).WithName("history")
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.trySave(ctx, logger, saveInterval-margin)
		}
	}
}

// trySave saves the history with a timeout, and logs an error.
func (k *HistoryKeeper) trySave(ctx context.Context, logger klog.Logger, interval time.Duration) {
	saveCtx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := k.save(saveCtx, logger, interval); err != nil && ctx.Err() == nil {
		logger.Error(err, "The history of the usage of workloads could not be saved")
	}
}

// restored adds the content of the ConfigMap to the learner, and returns the ConfigMap. Invalid content is logged and ignored.
func (k *HistoryKeeper) restored(ctx context.Context, logger klog.Logger) (*v1.ConfigMap, error) {
	object, err := k.configMap().Get(ctx)
	if err != nil || k.isRestored {
		return object, err
	}
	k.isRestored = true
	data, found := object.BinaryData[HistoryKey]
	if !found {
		return object, nil
	}
	workloads, err := decodeHistory(data)
	at, isTime := kube.SavedAt(object)
	if err == nil && (!isTime || at.After(k.options.Now().Add(maxSkew))) {
		err = fmt.Errorf("annotation %s: invalid value %q: must be a past time", kube.SavedAnnotation,
			object.Annotations[kube.SavedAnnotation])
	}
	if err != nil {
		logger.Error(err, "The saved history of the usage of workloads is invalid and is ignored", "configMap", k.options.Name)
		return object, nil
	}
	ignored := k.options.Learner.Restore(workloads, at, k.options.Now())
	k.ignored.Store(int64(ignored))
	if ignored > 0 {
		logger.Error(nil, "Workloads of the saved history are ignored: they use more than the largest node has, or have too many pods",
			"configMap", k.options.Name, "ignored", ignored)
	}
	logger.Info("Restored the history of the usage of workloads", "workloads", len(workloads), "saved", at)
	return object, nil
}

// configMap returns the ConfigMap of the history.
func (k *HistoryKeeper) configMap() kube.Saved {
	return kube.Saved{ConfigMaps: k.options.ConfigMaps, Name: k.options.Name}
}

// save writes the history, unless a replica has done so within the interval. If another replica writes at the same time, its
// history is kept.
func (k *HistoryKeeper) save(ctx context.Context, logger klog.Logger, interval time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	object, err := k.restored(ctx, logger)
	if err != nil {
		return err
	}
	now := k.options.Now()
	if at, ok := kube.SavedAt(object); ok && now.Sub(at) < interval && !at.After(now) {
		return nil
	}
	workloads := k.options.Learner.Workloads()
	data, written, err := EncodeHistory(workloads, kube.MaxSaved)
	if err != nil {
		return err
	}
	isSaved, err := k.configMap().Update(ctx, object, map[string][]byte{HistoryKey: data}, now, "plimsoll-scheduler")
	if err != nil || !isSaved {
		return err
	}
	dropped := len(workloads) - written
	k.saved.Store(&History{Saved: now, SavedBytes: len(data), Dropped: dropped})
	if dropped > 0 {
		logger.Info("Workloads were left out of the saved history: those with the fewest pods if it is too large, and those "+
			"with a name that is too long", "saved", written, "leftOut", dropped, "maxBytes", kube.MaxSaved)
	}
	return nil
}
