package setup

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// fakeLock is a lock in memory that several leases share.
type fakeLock struct {
	identity string
	record   *resourcelock.LeaderElectionRecord
	err      *error
}

func (f fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := *f.record
	return &record, nil, *f.err
}

func (f fakeLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return f.Update(context.Background(), record)
}

func (f fakeLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if *f.err == nil {
		*f.record = record
	}
	return *f.err
}

func (fakeLock) RecordEvent(string) {}
func (f fakeLock) Identity() string { return f.identity }
func (fakeLock) Describe() string   { return "system/controller" }

// leaseTest is a process with a lease, a clock and a transport that counts requests.
type leaseTest struct {
	*testing.T
	lease  *Lease
	lock   fakeLock
	now    time.Time
	passed int
}

func newLeaseTest(t *testing.T) *leaseTest {
	l := &leaseTest{T: t, now: time.Now()}
	l.lock = fakeLock{"me", &resourcelock.LeaderElectionRecord{}, new(error)}
	l.lease = &Lease{Interface: l.lock, now: func() time.Time { return l.now }}
	return l
}

func (l *leaseTest) renew(identity string) {
	_ = l.lease.Update(l.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: identity})
}

// send sends a request, and returns its error.
func (l *leaseTest) send(method string) error {
	l.Helper()
	request, err := http.NewRequestWithContext(l.Context(), method, "http://plimsoll.invalid", strings.NewReader("body"))
	must.Succeed(l, err)
	next := roundTrip(func(*http.Request) (*http.Response, error) {
		l.passed++
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
	})
	response, err := refuseWrites{l.lease, next}.RoundTrip(request)
	if err == nil {
		response.Body.Close()
	}
	return err
}

func TestLease(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*leaseTest)
		refused string // words of the error; "" if the write passes
	}{
		"never the leader":     {func(*leaseTest) {}, "not the leader"},
		"just renewed":         {func(l *leaseTest) { l.renew("me") }, ""},
		"renewed 9 s ago":      {func(l *leaseTest) { l.renew("me"); l.now = l.now.Add(9 * time.Second) }, ""},
		"renewed 10 s ago":     {func(l *leaseTest) { l.renew("me"); l.now = l.now.Add(10 * time.Second) }, "was last renewed 10s ago"},
		"stopped for a minute": {func(l *leaseTest) { l.renew("me"); l.now = l.now.Add(time.Minute) }, "was last renewed 1m0s ago"},
		// The wall clock goes on while the machine is suspended, the monotonic clock does not.
		"machine suspended": {func(l *leaseTest) { l.renew("me"); l.now = l.now.Round(0).Add(time.Hour) }, "was last renewed 1h0m0s ago"},
		"released":          {func(l *leaseTest) { l.renew("me"); l.renew("") }, "not the leader"},
		"release fails": {func(l *leaseTest) {
			l.renew("me")
			*l.lock.err = errors.New("timeout")
			l.renew("")
			*l.lock.err = nil
		}, "not the leader"},
		"renewal fails": {func(l *leaseTest) {
			l.renew("me")
			l.now = l.now.Add(10 * time.Second)
			*l.lock.err = errors.New("timeout")
			l.renew("me")
			*l.lock.err = nil
		}, "was last renewed 10s ago"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeaseTest(t)
			tc.prepare(l)
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				err := l.send(method)
				if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
					t.Errorf("%s: %v, want %q", method, err, tc.refused)
				}
			}
			if passed := l.passed > 0; passed != (tc.refused == "") {
				t.Errorf("%d writes passed", l.passed)
			}
			l.passed = 0
			if err := l.send(http.MethodGet); err != nil || l.passed != 1 {
				t.Errorf("a read was refused: %v", err)
			}
		})
	}
}

// Without leader election there is no lease, and all writes pass.
func TestNoLeaderElection(t *testing.T) {
	options := ctrl.Options{LeaderElectionID: "x", LeaderElectionNamespace: "y"}
	lease, err := ElectLeader(&rest.Config{}, &options)
	if err != nil || lease != nil || options.LeaderElectionResourceLockInterface != nil {
		t.Fatalf("lease %v, options %v, error %v", lease, options, err)
	}
	if next := http.NewFileTransport(nil); lease.RefuseWrites(next) != next {
		t.Error("the transport is wrapped")
	}
}
