package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// renewDeadline is the time without a renewal after which a leader gives up, the default of controller-runtime.
const renewDeadline = 10 * time.Second

// ErrNotLeader is the error of writes by a process that is not, or may not be, the leader.
var ErrNotLeader = errors.New("not the leader: the write is refused")

// Lease is the lock of leader election. It stores when it was last renewed, so that a process that was stopped, or cut off from the API
// server, does not write after another process may have become the leader. It is safe for concurrent use.
type Lease struct {
	resourcelock.Interface
	now func() time.Time
	// renewed is the time at which the last successful renewal was sent, nil if the process is not the leader.
	renewed atomic.Pointer[time.Time]
}

// ElectLeader sets leader election with a lease of the cluster of a config in the options of a manager, if they
// enable it. It returns the lease, nil if they do not.
func ElectLeader(config *rest.Config, options *ctrl.Options) (*Lease, error) {
	if !options.LeaderElection {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	lock, err := resourcelock.NewFromKubeconfig(
		resourcelock.LeasesResourceLock, options.LeaderElectionNamespace, options.LeaderElectionID,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, config, renewDeadline)
	if err != nil {
		return nil, err
	}
	lease := &Lease{Interface: lock, now: time.Now}
	options.LeaderElectionResourceLockInterface, options.RenewDeadline = lease, new(renewDeadline)
	return lease, nil
}

// Create implements resourcelock.Interface.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *Lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write writes a record, and stores the time of a renewal that succeeded. A release of the lock counts even if it failed.
func (l *Lease) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	sent := l.now()
	err := write(ctx, record)
	switch {
	case record.HolderIdentity != l.Identity():
		l.renewed.Store(nil)
	case err == nil:
		l.renewed.Store(&sent)
	}
	return err
}

// check returns an error unless the last renewal is recent. The monotonic clock does not run while a machine is suspended, the wall clock
// can be set back: the longer time counts.
func (l *Lease) check() error {
	renewed := l.renewed.Load()
	if renewed == nil {
		return ErrNotLeader
	}
	now := l.now()
	if age := max(now.Sub(*renewed), now.Round(0).Sub(renewed.Round(0))); age >= renewDeadline {
		return fmt.Errorf("%w: the lease %s was last renewed %s ago", ErrNotLeader, l.Describe(), age.Round(time.Second))
	}
	return nil
}

// RefuseWrites returns a transport that refuses writes, with ErrNotLeader, unless the last renewal is recent. It returns next if the lease
// is nil.
func (l *Lease) RefuseWrites(next http.RoundTripper) http.RoundTripper {
	if l == nil {
		return next
	}
	return refuseWrites{l, next}
}

// refuseWrites is the transport that RefuseWrites returns.
type refuseWrites struct {
	lease *Lease
	next  http.RoundTripper
}

// WrappedRoundTripper returns the next transport, for clients that close its idle connections.
func (r refuseWrites) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip implements http.RoundTripper.
func (r refuseWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		if err := r.lease.check(); err != nil {
			if request.Body != nil {
				request.Body.Close()
			}
			return nil, err
		}
	}
	return r.next.RoundTrip(request)
}
