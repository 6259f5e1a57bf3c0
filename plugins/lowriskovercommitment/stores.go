package lowriskovercommitment

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/file"
	"github.com/plimsoll-k8s/plimsoll/load/remote"
)

// Stores are the readers of load of one scheduler: profiles that name the same
// source in the same way share one.
type Stores struct {
	mu    sync.Mutex
	byKey map[storeKey]*load.Store
	make  func(maxAge time.Duration) (*load.Store, error)
}

type storeKey struct {
	watcherAddress       string
	provider             config.MetricProvider
	pollInterval, maxAge time.Duration
}

// NewStores returns an empty set, which starts a reader for every source that
// is named.
func NewStores() *Stores { return &Stores{byKey: map[storeKey]*load.Store{}} }

// StoresMadeBy returns a set whose stores are made and filled by the caller,
// whatever source the arguments name, and no reader: for those who bring load
// of their own, such as a simulation.
func StoresMadeBy(make func(maxAge time.Duration) (*load.Store, error)) *Stores {
	return &Stores{make: make}
}

// get returns the store for these arguments; it is filled until ctx ends.
func (s *Stores) get(ctx context.Context, args *config.LowRiskOverCommitmentArgs) (*load.Store, error) {
	if s.make != nil {
		return s.make(args.MaxLoadAge.Duration)
	}
	source, err := newSource(args)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := storeKey{args.WatcherAddress, args.MetricProvider, args.PollInterval.Duration, args.MaxLoadAge.Duration}
	if store, ok := s.byKey[key]; ok {
		return store, nil
	}
	store := load.NewStore(args.MaxLoadAge.Duration, nil)
	s.byKey[key] = store
	logger := klog.FromContext(ctx).WithName(Name)
	if source == nil {
		logger.Info("No source of load is configured (watcherAddress or metricProvider): nodes are judged by limits only")
		return store, nil
	}
	go store.Run(ctx, source, args.PollInterval.Duration, func(err error) {
		if err != nil {
			logger.Error(err, "Load cannot be read; nodes are judged by limits only as soon as the last reading is too old", "maxLoadAge", args.MaxLoadAge.Duration)
			return
		}
		logger.Info("Load is read again", "source", source.String())
	})
	return store, nil
}

// newSource returns the source that the arguments name, nil if they name none.
func newSource(args *config.LowRiskOverCommitmentArgs) (load.Source, error) {
	switch {
	case args.WatcherAddress != "":
		source, err := remote.New(args.WatcherAddress)
		if err != nil {
			return nil, fmt.Errorf("watcherAddress: %w", err)
		}
		return source, nil
	case args.MetricProvider.Type == config.MetricProviderFile:
		return file.New(args.MetricProvider.Address), nil
	}
	return nil, nil
}
