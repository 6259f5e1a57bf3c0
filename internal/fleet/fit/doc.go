// Package fit computes from the summaries of clusters how many replicas of pod templates fit them. It is the side of the hub: package
// summarize makes the summaries. It does no I/O.
//
// A Template is a pod template with its constraints, and a Summary has the amounts of a ClusterCapacity in arrays. Equal labels
// and taints of nodes are the same value in all summaries of a fleet, so that a template is matched with each of them once. CountFit
// returns the replicas of a workload that fit a summary.
package fit
