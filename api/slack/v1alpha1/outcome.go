package v1alpha1

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Recommend is the goal of a search for a policy.
type Recommend struct {
	// Wait is a percentage of the pods and the time within which they must have a node, such as p99=5s.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^p[0-9]{1,3}([.][0-9]{1,3})?=([0-9]{1,6}[hms])+$') && double(self.split('=')[0].substring(1)) > 0.0 && double(self.split('=')[0].substring(1)) <= 100.0 && duration(self.split('=')[1]) >= duration('1s')",message="must be a percentile of more than p0 up to p100, and a time of whole seconds of at least 1s, such as p99=5s or p99.9=1m"
	Wait string `json:"wait"`
	// BootSeconds is the time until a new node is ready, from 1 to 3,600 seconds. The default is 120.
	//
	// +kubebuilder:default=120
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	BootSeconds *int32 `json:"bootSeconds,omitempty"`
}

// Outcome states how long pods of the pool waited for a node, and how much slack was held. It changes at most once in five
// minutes.
type Outcome struct {
	// From and To are the period: the last 24 hours, or the time for which the pool is recorded if it is shorter.
	From metav1.Time `json:"from"`
	To   metav1.Time `json:"to"`
	// AtOnce is the number of pods that got a node of the pool within 10 seconds of their creation, Waited the number
	// of pods that got one later.
	AtOnce int64 `json:"atOnce"`
	Waited int64 `json:"waited"`
	// P99WaitSeconds is the time within which 99% of all these pods had a node, LongestWaitSeconds the longest wait.
	P99WaitSeconds     int64 `json:"p99WaitSeconds"`
	LongestWaitSeconds int64 `json:"longestWaitSeconds"`
	// PlaceholderHours is the number of placeholders that fit the nodes, multiplied by hours, such as "12.5".
	PlaceholderHours string `json:"placeholderHours"`
	// Price is the price of PlaceholderHours by the annotation plimsoll.dev/price-per-hour of the nodes. It is missing
	// unless a node had a price in the whole period.
	//
	// +optional
	Price string `json:"price,omitempty"`
}

// Recommendation is the cheapest policy that reaches a goal in a simulation of recorded pods.
type Recommendation struct {
	// Goal is spec.recommend at the time of the search.
	Goal Recommend `json:"goal"`
	// From and To are the recorded period, To the time of the search, and Pods the number of pods created in the period.
	From metav1.Time `json:"from"`
	To   metav1.Time `json:"to"`
	Pods int64       `json:"pods"`
	// Reached reports whether the policy reaches the goal. If no policy does, the recommendation has the one with the
	// shortest wait.
	Reached bool `json:"reached"`
	// MinRate, Minimum and Schedules are the recommended fields of the spec. A rate of 0% without minimum and schedules
	// states that no slack is needed.
	MinRate string `json:"minRate"`
	// +optional
	Minimum *Amount `json:"minimum,omitempty"`
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Schedules []Schedule `json:"schedules,omitempty"`
	// WaitSeconds is the wait at the percentile of the goal, and NodeHours the hours of all nodes, such as "336".
	WaitSeconds int64  `json:"waitSeconds"`
	NodeHours   string `json:"nodeHours"`
	// Price is the price of NodeHours by the annotation plimsoll.dev/price-per-hour of the nodes. It is missing if no
	// node has a price.
	//
	// +optional
	Price string `json:"price,omitempty"`
}

// ParseWait parses a percentage of pods and the time within which they must have a node, such as p99=5s. The error is a
// description of valid values.
func ParseWait(text string) (percent float64, wait time.Duration, err error) {
	const form = "a percentile and a time of whole seconds such as p99=5s or p99.9=1m"
	name, duration, found := strings.Cut(text, "=")
	number, isPercentile := strings.CutPrefix(name, "p")
	percent, err = strconv.ParseFloat(number, 64)
	wait, durationErr := time.ParseDuration(duration)
	switch {
	case !found || !isPercentile || err != nil || durationErr != nil || wait%time.Second != 0:
		return 0, 0, errors.New(form)
	case percent <= 0 || percent > 100 || math.IsNaN(percent):
		return 0, 0, errors.New(form + ", with a percentile of more than p0 up to p100")
	case wait <= 0:
		return 0, 0, errors.New(form + ", with a time of at least 1s: pods wait for the scheduler, too")
	}
	return percent, wait, nil
}
