package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
)

const (
	// leaseDuration is the lease of the controllers.
	leaseDuration = 15 * time.Second
	// margin covers the time between a check in a replica and the arrival of its write.
	margin = time.Second
)

// selection is the clusters of a placement at one time, sorted.
type selection []string

// checkSelections checks the selections of a placement in one round, in the order of the changes. No
// selection may have fewer clusters than the floor, and there may be at most maxChanges.
func checkSelections(placement string, changes []selection, floor, maxChanges int) error {
	for i, now := range changes {
		if len(now) < floor {
			return fmt.Errorf("decision lost: placement %s has %d clusters after change %d (%s), want at least %d",
				placement, len(now), i+1, strings.Join(now, ", "), floor)
		}
	}
	if len(changes) > maxChanges {
		return fmt.Errorf("flapping: the decision of placement %s changed %d times, want at most %d: %q",
			placement, len(changes), maxChanges, changes)
	}
	return nil
}

// checkCounts checks the numbers of placeholders of a policy in one round, in the order of the changes.
// No number may exceed the limit, and there may be at most maxChanges.
func checkCounts(policy string, changes []int64, limit int64, maxChanges int) error {
	if len(changes) > 0 && slices.Max(changes) > limit {
		return fmt.Errorf("placeholders doubled: policy %s has up to %d, want at most %d: %d", policy, slices.Max(changes), limit, changes)
	}
	if len(changes) > maxChanges {
		return fmt.Errorf("flapping: the placeholders of policy %s changed %d times, want at most %d: %d",
			policy, len(changes), maxChanges, changes)
	}
	return nil
}

// replicaLog has the writes of a replica.
type replicaLog struct {
	name   string
	starts []time.Time
	writes []apiproxy.Write
}

// isLease reports whether a write acquires, renews or releases the lease of the controllers.
func isLease(w apiproxy.Write) bool { return strings.Contains(w.Path, "/leases") }

// isChecked reports whether a write requires the lease: it took effect and is no event.
func isChecked(w apiproxy.Write) bool {
	return w.Succeeded() && !isLease(w) && !strings.Contains(w.Path, "/events")
}

// checkLeader checks that each replica writes only while it holds the lease. It checks the writes since a
// time.
func checkLeader(logs []replicaLog, since time.Time) error {
	for i, log := range logs {
		for _, w := range log.writes {
			if !isChecked(w) || w.Received.Before(since) {
				continue
			}
			if err := checkWrite(log, w, slices.Concat(logs[:i], logs[i+1:])); err != nil {
				return fmt.Errorf("write by a non-leader: %w: %s", err, w)
			}
		}
	}
	return nil
}

// checkWrite checks that since the last renewal before a write no other replica has acquired the lease,
// and that the lease has not expired.
func checkWrite(log replicaLog, w apiproxy.Write, others []replicaLog) error {
	renewed := lastRenewal(log, w.Received)
	if renewed == nil {
		return fmt.Errorf("%s has not acquired the lease", log.name)
	}
	if age := w.Received.Sub(renewed.Received); age > leaseDuration+margin {
		return fmt.Errorf("the lease of %s expired %s before", log.name, age-leaseDuration)
	}
	for _, other := range others {
		if taken := firstAcquisition(other, renewed.Answered, w.Received.Add(-margin)); taken != nil {
			return fmt.Errorf(
				"%s has acquired the lease at %s, but %s writes", other.name, taken.Answered.Format(time.StampMilli), log.name,
			)
		}
	}
	return nil
}

// lastRenewal returns the last time at which the process of a replica that runs at a time has acquired or
// renewed the lease, nil if it has not.
func lastRenewal(log replicaLog, at time.Time) (last *apiproxy.Write) {
	var started time.Time
	for _, start := range log.starts {
		if start.Before(at) {
			started = start
		}
	}
	for i := range log.writes {
		w := &log.writes[i]
		if isLease(*w) && w.Succeeded() && w.Received.After(started) && !w.Received.After(at) &&
			(last == nil || w.Received.After(last.Received)) {
			last = w
		}
	}
	return last
}

// firstAcquisition returns the first lease write of a replica between two times, nil if there is none.
func firstAcquisition(log replicaLog, after, before time.Time) *apiproxy.Write {
	for i := range log.writes {
		if w := &log.writes[i]; isLease(*w) && w.Succeeded() && w.Answered.After(after) && w.Answered.Before(before) {
			return w
		}
	}
	return nil
}
