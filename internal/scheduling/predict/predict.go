// Package predict predicts the usage of pods and nodes from measurements.
//
// Requests and limits bound the usage of pods, and the load of the last minutes is a sample of it.
// Neither is the usage of a pod over its life. The package learns it:
//
//   - A pod's expected use is its base times the ratio of its workload. The base is its request, or one
//     millicore or byte if it has none; pods with and without a request form two classes.
//   - The ratio of a workload is estimated from the usage of its pods. With few pods and readings, the
//     estimate is close to the mean of its class (empirical Bayes).
//   - The mean of a class is fitted to the usage of pods or, where only nodes are measured, to the load
//     of nodes: load = a x requests + b x number of pods without a request.
//   - The shift of a node is the usage of its pods minus the usage expected of their workloads. It is
//     estimated by a Kalman filter over the measured load of the node: the more precise a reading is in
//     relation to the expectation, the more the filter follows it.
//
// The predicted peak of a node is
//
//	peak = mean + k x sqrt(variance over time + variance of the estimate)
//
// in which the deviations of pods of one workload are correlated, and the deviations of different
// workloads are independent.
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

// base returns the base of a pod, whose use is a multiple of it, and the class of the pod.
func (a Amount) base() (base float64, class int) {
	if a.Request > 0 {
		return max(a.Request, 1), requested
	}
	return 1, unrequested
}

// Prior has the assumptions before the first measurement, for one class of pods and one resource, as
// multiples of the base.
type Prior struct {
	// Mean is the mean of all pods.
	Mean float64
	// Workload, Pod and Time are coefficients of variation: between workloads, between the pods of a
	// workload, and of one pod over time.
	Workload, Pod, Time float64
}

// priors are the priors of all classes and resources. Pods with a request are expected to use it, pods
// without a request to use the amount that kube-scheduler assumes (100 millicores and 200 MiB).
var priors = [Resources][classes]Prior{
	CPU:    {requested: {1, 0.4, 0.2, 0.4}, unrequested: {100, 1, 0.5, 0.5}},
	Memory: {requested: {1, 0.4, 0.2, 0.2}, unrequested: {200 << 20, 1, 0.5, 0.2}},
}

// DefaultHalfLife is the default time in seconds after which a reading counts half.
const DefaultHalfLife = 24 * 3600.0
