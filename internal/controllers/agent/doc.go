// Package clusterscore scores a cluster by properties that the sum of its allocatable resources does
// not show: free resources after requests, overcommitment by limits, the risk that measured load
// exceeds requests, and the available slack. An agent in the cluster publishes the scores for the
// placement of workloads onto clusters.
//
// Every score is an integer in [-100, 100], higher is better, and a function of the one cluster
// alone: scores of clusters of any size can be compared, and a cluster that joins or leaves the
// fleet does not change those of the others. A score without data is absent rather than medium.
//
// Only nodes that accept a pod without tolerations count, with the pods on them. Scores are
// truncated toward zero, as in Open Cluster Management.
package agent
