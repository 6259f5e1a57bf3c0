// Package chaos tests the controllers of slack and placements under random faults: two replicas, each
// behind a proxy that hangs, delays, rejects and drops requests, are killed and stopped while the cluster
// and the fleet change. A log of all writes is checked for invariants. TestSoak checks the memory and
// goroutines of the controllers and of the scheduler under the same changes and faults.
package chaos
