// Package slack plans placeholders: pods that reserve a share of the load of a pool of nodes, and
// capacity for its biggest pod. It is the arithmetic of the slack controller and of the library for
// autoscalers, and does not depend on Kubernetes.
//
// A Ledger counts the pool as nodes and pods change. A Planner computes successive plans that
// change rarely.
package slack

import (
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/saturate"
)

// The resources that are planned, as indexes of Amounts.
const (
	// CPU is in millicores.
	CPU = iota
	// Memory is in bytes.
	Memory
	// resources is the number of resources.
	resources
)

// Amounts is an amount of each resource, not negative.
type Amounts [resources]int64

// Add returns the sum, saturated at math.MaxInt64.
func (a Amounts) Add(b Amounts) Amounts {
	for r := range a {
		a[r] = saturate.Add(a[r], b[r])
	}
	return a
}

// Subtract returns the difference, at least 0.
func (a Amounts) Subtract(b Amounts) Amounts {
	for r := range a {
		a[r] = max(0, a[r]-b[r])
	}
	return a
}

// Multiply returns n times the amounts, saturated at math.MaxInt64.
func (a Amounts) Multiply(n int64) Amounts {
	for r := range a {
		a[r] = saturate.Multiply(a[r], n)
	}
	return a
}

// DivideUp returns the amounts divided by n, rounded up; n is at least 1.
func (a Amounts) DivideUp(n int64) Amounts {
	for r := range a {
		a[r] = divUp(a[r], n)
	}
	return a
}

// Min returns the smaller amount of each resource.
func (a Amounts) Min(b Amounts) Amounts {
	for r := range a {
		a[r] = min(a[r], b[r])
	}
	return a
}

// Max returns the larger amount of each resource.
func (a Amounts) Max(b Amounts) Amounts {
	for r := range a {
		a[r] = max(a[r], b[r])
	}
	return a
}

// FitsIn reports whether no amount exceeds that of the other.
func (a Amounts) FitsIn(b Amounts) bool {
	for r := range a {
		if a[r] > b[r] {
			return false
		}
	}
	return true
}

// IsZero reports whether all amounts are zero.
func (a Amounts) IsZero() bool { return a == Amounts{} }

// String returns amounts in the form "1500m CPU and 2Gi memory": whole CPUs without a unit, and memory in
// mebibytes, rounded up, or in gibibytes if these are whole.
func (a Amounts) String() string {
	cpu, memory := fmt.Sprintf("%dm", a[CPU]), divUp(a[Memory], mebibyte)
	if a[CPU]%1000 == 0 {
		cpu = fmt.Sprint(a[CPU] / 1000)
	}
	if memory%1024 == 0 && memory > 0 {
		return fmt.Sprintf("%s CPU and %dGi memory", cpu, memory/1024)
	}
	return fmt.Sprintf("%s CPU and %dMi memory", cpu, memory)
}

// less orders amounts, by CPU first.
func (a Amounts) less(b Amounts) bool {
	for r := range a {
		if a[r] != b[r] {
			return a[r] < b[r]
		}
	}
	return false
}

// Millionth is the unit of rates: a rate of 100,000 is 10%.
const Millionth = 1_000_000

// share returns a rate of the amounts, rounded up.
func (a Amounts) share(rate int64) Amounts {
	for r := range a {
		a[r] = Share(a[r], rate)
	}
	return a
}

// Share returns a rate of a number, rounded up. Both are not negative.
func Share(number, rate int64) int64 { return saturate.MulDivUp(number, rate, Millionth) }

// divUp returns a / b, rounded up; b is at least 1.
func divUp(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}
