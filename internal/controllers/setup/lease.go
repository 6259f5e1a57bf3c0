package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The durations of leader election are the defaults of controller-runtime.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	renewInterval = 2 * time.Second
)

// ErrNotLeader is the error of writes by a process that is not, or may not be, the leader.
var ErrNotLeader = errors.New("not the leader: the write is refused")

// Lease is the lock of leader election. It knows when it was last renewed, so that a
// process that was stopped, or cut off from the API server, does not write after another
// process may have become the leader. It is safe for concurrent use.
type Lease struct {
	resourcelock.Interface
	now func() time.Time

	mu sync.Mutex
	// renewed is the time at which the last successful renewal was sent, zero if the
	// process is not the leader.
	renewed time.Time
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
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = renewDeadline / 2 // one request that hangs must not end the leadership
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lease := &Lease{now: time.Now, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: options.LeaderElectionNamespace, Name: options.LeaderElectionID},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}
	options.LeaderElectionResourceLockInterface = lease
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(leaseDuration), new(renewDeadline), new(renewInterval)
	return lease, nil
}

// RefuseWrites returns a transport that refuses writes, with ErrNotLeader, unless the lease is held. It returns
// next if the lease is nil.
func (l *Lease) RefuseWrites(next http.RoundTripper) http.RoundTripper {
	if l == nil {
		return next
	}
	return refuseWrites{l, next}
}

// Create implements resourcelock.Interface.
func (l *Lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.now()
	return l.observe(record, sent, l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l *Lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.now()
	return l.observe(record, sent, l.Interface.Update(ctx, record))
}

// observe records a renewal if the write of a record succeeded, and a release of the lock
// even if it failed.
func (l *Lease) observe(record resourcelock.LeaderElectionRecord, sent time.Time, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case record.HolderIdentity != l.Identity():
		l.renewed = time.Time{}
	case err == nil:
		l.renewed = sent
	}
	return err
}

// held returns an error unless the last renewal is recent.
func (l *Lease) held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return ErrNotLeader
	}
	if age := elapsed(l.renewed, l.now()); age >= renewDeadline {
		return fmt.Errorf("%w: the lease %s was last renewed %s ago", ErrNotLeader, l.Describe(), age.Round(time.Second))
	}
	return nil
}

// elapsed returns the longer of the times that the monotonic clock and the wall clock
// measured: the former does not run while a machine is suspended.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// refuseWrites is a transport that refuses writes unless the lease is held.
type refuseWrites struct {
	lease *Lease
	next  http.RoundTripper
}

// WrappedRoundTripper returns the next transport. Clients search it for a transport that cancels requests.
func (r refuseWrites) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip implements http.RoundTripper.
func (r refuseWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		if err := r.lease.held(); err != nil {
			if request.Body != nil {
				request.Body.Close()
			}
			return nil, err
		}
	}
	return r.next.RoundTrip(request)
}
