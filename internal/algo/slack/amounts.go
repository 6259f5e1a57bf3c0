// Package slack plans placeholders: how many pods of which size have to be held
// in reserve so that a pool of nodes has a rate of its load to spare, and room
// for its biggest pod. It is the arithmetic of the slack controller and of the
// library for autoscalers, without Kubernetes.
//
// A Ledger keeps count of a pool as nodes and pods come and go, Compute works
// out a plan in one pass over the shapes of pods and nodes, and a Planner makes
// plans follow one another without unrest.
package slack

import "github.com/plimsoll-k8s/plimsoll/internal/algo/saturate"

// The resources that are planned, as indexes of Amounts.
const (
	// CPU in millicores.
	CPU = iota
	// Memory in bytes.
	Memory
	// resources is how many there are.
	resources
)

// Amounts are how much there is of each resource, at least 0.
type Amounts [resources]int64

// Plus returns the sum, at most the largest number there is.
func (a Amounts) Plus(b Amounts) Amounts {
	for r := range a {
		a[r] = saturate.Add(a[r], b[r])
	}
	return a
}

// Minus returns what is left, at least 0.
func (a Amounts) Minus(b Amounts) Amounts {
	for r := range a {
		a[r] = max(0, a[r]-b[r])
	}
	return a
}

// Times returns n times the amounts, at most the largest number there is.
func (a Amounts) Times(n int64) Amounts {
	for r := range a {
		a[r] = saturate.Multiply(a[r], n)
	}
	return a
}

// Over returns the amounts divided by n, which is at least 1, rounded up.
func (a Amounts) Over(n int64) Amounts {
	for r := range a {
		a[r] = divUp(a[r], n)
	}
	return a
}

// Least returns the smaller amount of each resource.
func (a Amounts) Least(b Amounts) Amounts {
	for r := range a {
		a[r] = min(a[r], b[r])
	}
	return a
}

// Most returns the larger amount of each resource.
func (a Amounts) Most(b Amounts) Amounts {
	for r := range a {
		a[r] = max(a[r], b[r])
	}
	return a
}

// FitsIn reports whether there is at least as much of every resource.
func (a Amounts) FitsIn(b Amounts) bool {
	for r := range a {
		if a[r] > b[r] {
			return false
		}
	}
	return true
}

// IsZero reports whether there is nothing of anything.
func (a Amounts) IsZero() bool { return a == Amounts{} }

// less orders amounts, by CPU first.
func (a Amounts) less(b Amounts) bool {
	for r := range a {
		if a[r] != b[r] {
			return a[r] < b[r]
		}
	}
	return false
}

// Millionth is the unit of rates: 100,000 are 10 %.
const Millionth = 1_000_000

// share returns rate millionths of the amounts, rounded up.
func (a Amounts) share(rate int64) Amounts {
	for r := range a {
		a[r] = Share(a[r], rate)
	}
	return a
}

// Share returns rate millionths of a number, both at least 0, rounded up.
func Share(number, rate int64) int64 { return saturate.MulDivUp(number, rate, Millionth) }

// divUp returns a / b, rounded up; b is at least 1.
func divUp(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}
