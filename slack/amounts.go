// Package slack plans placeholders: pods that reserve a share of the load of a pool of nodes, and
// capacity for its biggest pod. It is the arithmetic of the slack controller and of the library for
// autoscalers, and does not depend on Kubernetes.
//
// A Ledger counts the pool as nodes and pods change. A Planner computes successive plans that
// change rarely.
package slack

import (
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// The resources that are planned, as indexes of Amounts.
const (
	// cpuIndex is in millicores.
	cpuIndex = iota
	// memoryIndex is in bytes.
	memoryIndex
	// numResources is the number of resources.
	numResources
)

// amounts is an amount of each resource, not negative.
type amounts [numResources]int64

// Add returns the sum, saturated at math.MaxInt64.
func (a amounts) Add(b amounts) amounts {
	for r := range a {
		a[r] = resources.Add(a[r], b[r])
	}
	return a
}

// Subtract returns the difference, at least 0.
func (a amounts) Subtract(b amounts) amounts {
	for r := range a {
		a[r] = max(0, a[r]-b[r])
	}
	return a
}

// Multiply returns n times the amounts, saturated at math.MaxInt64.
func (a amounts) Multiply(n int64) amounts {
	for r := range a {
		a[r] = resources.Multiply(a[r], n)
	}
	return a
}

// DivideUp returns the amounts divided by n, rounded up; n is at least 1.
func (a amounts) DivideUp(n int64) amounts {
	for r := range a {
		a[r] = divUp(a[r], n)
	}
	return a
}

// Min returns the smaller amount of each resource.
func (a amounts) Min(b amounts) amounts {
	for r := range a {
		a[r] = min(a[r], b[r])
	}
	return a
}

// Max returns the larger amount of each resource.
func (a amounts) Max(b amounts) amounts {
	for r := range a {
		a[r] = max(a[r], b[r])
	}
	return a
}

// FitsIn reports whether no amount exceeds that of the other.
func (a amounts) FitsIn(b amounts) bool {
	for r := range a {
		if a[r] > b[r] {
			return false
		}
	}
	return true
}

// IsZero reports whether all amounts are zero.
func (a amounts) IsZero() bool { return a == amounts{} }

// String returns amounts in the form "1500m CPU and 2Gi memory".
func (a amounts) String() string { return format.Requests(a[cpuIndex], a[memoryIndex]) }

// less orders amounts, by CPU first.
func (a amounts) less(b amounts) bool {
	for r := range a {
		if a[r] != b[r] {
			return a[r] < b[r]
		}
	}
	return false
}

// millionth is the unit of rates: a rate of 100,000 is 10%.
const millionth = 1_000_000

// share returns a rate of the amounts, rounded up.
func (a amounts) share(rate int64) amounts {
	for r := range a {
		a[r] = rateShare(a[r], rate)
	}
	return a
}

// rateShare returns a rate of a number, rounded up. Both are not negative.
func rateShare(number, rate int64) int64 { return resources.MulDivUp(number, rate, millionth) }

// divUp returns a / b, rounded up; b is at least 1.
func divUp(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}
