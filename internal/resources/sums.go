package resources

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Sum holds the sums over the pods of a node for one resource.
type Sum struct {
	// Request is the sum of the requests.
	Request int64
	// Limit is the sum of the limits of the bounded pods; PartialLimit is the sum of the limits that
	// unbounded pods declare for some of their containers.
	Limit, PartialLimit int64
	// FlooredLimit is the sum over all pods of the larger of declared limit and request.
	FlooredLimit int64
	// Unbounded is the number of unbounded pods.
	Unbounded int64
}

// Add adds the amount of a pod.
func (s *Sum) Add(a Amount) {
	s.Request = Add(s.Request, a.Request)
	s.FlooredLimit = Add(s.FlooredLimit, max(a.Limit, a.Request))
	if a.Unbounded {
		s.PartialLimit = Add(s.PartialLimit, a.Limit)
		s.Unbounded++
		return
	}
	s.Limit = Add(s.Limit, a.Limit)
}

// LimitWithDefault returns the sum of the limits of all pods. An unbounded pod counts with its
// declared limits plus defaultLimit, or with the allocatable amount if defaultLimit is 0.
func (s *Sum) LimitWithDefault(defaultLimit, allocatable int64) int64 {
	if s.Unbounded == 0 {
		return s.Limit
	}
	if defaultLimit == 0 {
		return Add(s.Limit, Multiply(s.Unbounded, allocatable))
	}
	return Add(Add(s.Limit, s.PartialLimit), Multiply(s.Unbounded, defaultLimit))
}

// Sums holds the sums over the pods of a node for every resource. The zero value is for a node without pods.
type Sums struct {
	common   [numUnboundable]Sum
	extended []namedSum
}

type namedSum struct {
	name v1.ResourceName
	Sum
}

// Add adds a pod.
func (s *Sums) Add(pod *Pod) {
	for i := range s.common {
		s.common[i].Add(Amount{pod.requests[i], pod.limits[i], pod.unbounded[i]})
	}
	for _, a := range pod.Extended {
		i, found := slices.BinarySearchFunc(s.extended, a.Name, func(e namedSum, name v1.ResourceName) int {
			return strings.Compare(string(e.name), string(name))
		})
		if !found {
			s.extended = slices.Insert(s.extended, i, namedSum{name: a.Name})
		}
		s.extended[i].Add(a.Amount)
	}
}

// Get returns the sum for one resource.
func (s *Sums) Get(r Resource) Sum {
	if i := int(r.index); i < len(s.common) {
		return s.common[i]
	}
	for i := range s.extended {
		if s.extended[i].name == r.name {
			return s.extended[i].Sum
		}
	}
	return Sum{}
}
