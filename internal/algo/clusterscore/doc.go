// Package clusterscore scores a whole cluster by what the sum of its
// allocatable amounts cannot say: what requests leave free, what limits promise,
// how likely the measured load is to get over the requests, and how much of the
// slack that is wanted is there. An agent in the cluster publishes the scores
// for the placement of workloads onto clusters.
//
// Every score is an integer in [-100, 100], the bigger the better, and a
// function of the one cluster alone: the scores of two clusters of any size can
// be compared, and a cluster that joins or leaves the fleet does not move those
// of the others. Where there is nothing to make a score of it is absent, and
// never something in the middle.
//
// Only nodes that a pod without tolerations may be put on count, and the pods on
// them. What is not a whole number is truncated toward zero, as in the scores of
// Open Cluster Management.
package clusterscore

// Resource is an index into amounts.
type Resource int

// The resources that are scored.
const (
	CPU    Resource = iota // in millicores
	Memory                 // in bytes

	resources
)

// Amounts are what there is of every resource, in [0, MaxInt64].
type Amounts [resources]int64
