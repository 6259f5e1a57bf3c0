// Package predict predicts the usage of pods and nodes from measurements.
//
// Requests and limits bound the usage of pods, and the load of the last minutes is a sample of it.
// Neither is the usage of a pod over its life. The package learns it:
//
//   - A pod is expected to use what the pods of its workload use. With few pods and short histories, the estimate is close to what
//     the pods of its class use (empirical Bayes). Pods with a request form one class, whose usage is a multiple of the request; pods
//     without a request, or with many times their request, form the other one. What a workload uses is an amount: it remains when
//     the request changes.
//   - How much a history says depends on its length: the variance of the mean over a time is estimated for each time scale, from
//     minutes to days.
//   - The mean of a class is the mean of its workloads. Where only nodes are measured, it is the request or, without a request, what
//     kube-scheduler assumes.
//   - The shift of a node is the usage of its pods minus the usage expected of their workloads: as the recent usage of its pods
//     says, and as the measured load of the node says. The longer a difference has remained, the longer it is expected to remain.
//
// The predicted peak of a node is
//
//	peak = mean + k x sqrt(variance over time + variance of the estimate)
//
// in which the pods vary independently over time, and the error of the estimated mean of a workload is common to its pods.
//
// A Learner receives each reading and returns an immutable Model, by which nodes are scored.
// CPU is in millicores and memory in bytes.
package predict

import "github.com/plimsoll-k8s/plimsoll/internal/resources"

// The resources, as indexes.
const (
	// CPU time in millicores.
	CPU = iota
	// Memory is the working set in bytes.
	Memory
	// Resources is the number of resources.
	Resources
)

// Amount is the declared request and limit of a pod for one resource.
type Amount struct {
	// Request is 0 if the pod has none. Limit is 0 if the pod may use the whole node.
	Request, Limit float64
}

// Declared is what a pod declares.
type Declared struct {
	Workload resources.WorkloadKey
	Amounts  [Resources]Amount
}

// The classes of pods, by resource.
const (
	requested = iota
	unrequested
	classes
)

// Prior has the assumptions before the first measurement, for one class of pods and one resource.
type Prior struct {
	// Mean is the mean of all pods, as a multiple of the request or, without a request, in millicores or bytes.
	Mean float64
	// Workload, Pod and Time are coefficients of variation: between workloads, between the pods of a
	// workload, and of one pod over time.
	Workload, Pod, Time float64
}

// priors are the priors of all classes and resources. Pods with a request are expected to use it, pods
// without a request to use the amount that kube-scheduler assumes (100 millicores and 200 MiB).
var priors = [Resources][classes]Prior{
	CPU:    {requested: {1, 0.7, 0.3, 0.4}, unrequested: {100, 1, 0.5, 0.5}},
	Memory: {requested: {1, 0.5, 0.2, 0.2}, unrequested: {200 << 20, 1, 0.5, 0.2}},
}

// DefaultHalfLife is the default time in seconds after which a reading counts half.
const DefaultHalfLife = 24 * 3600.0
