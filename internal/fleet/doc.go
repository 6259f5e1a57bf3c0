// Package fleet keeps the state of a hub of Open Cluster Management and decides its
// placements. It converts API objects to the requests of package decide, and decisions to
// PlacementDecisions. After every change of an object it returns the placements
// whose decisions the change can affect. It does no I/O: callers read and write the
// objects.
//
// Package decide has the algorithm, package expression the CEL expressions of predicates, and package fit the replicas of
// workloads that fit clusters, from the summaries that the agents make with package summarize.
//
// docs/compatibility.md lists the differences from the placement controller of Open Cluster Management.
package fleet
