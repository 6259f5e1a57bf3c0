package resources

import (
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Amounts is an amount of each resource, by Index. Amounts are in [0, math.MaxInt64], except for the free
// amounts of a node, which are negative if the node is overcommitted.
type Amounts [NumIndexes]int64

// CPUAndMemory returns the CPU and memory of a list.
func CPUAndMemory(list v1.ResourceList) Amounts {
	return Amounts{
		CPU: CPUResource.Amount(list[v1.ResourceCPU]), Memory: MemoryResource.Amount(list[v1.ResourceMemory]),
	}
}

// Add returns the sum, saturated at math.MaxInt64.
func (a Amounts) Add(b Amounts) Amounts {
	for r := range a {
		a[r] = Add(a[r], b[r])
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

// Minus returns the difference, which is negative where b is larger.
func (a Amounts) Minus(b Amounts) Amounts {
	for r := range a {
		a[r] -= b[r]
	}
	return a
}

// Multiply returns n times the amounts, saturated at math.MaxInt64.
func (a Amounts) Multiply(n int64) Amounts {
	for r := range a {
		a[r] = Multiply(a[r], n)
	}
	return a
}

// DivideUp returns the amounts divided by n, rounded up; n is at least 1.
func (a Amounts) DivideUp(n int64) Amounts {
	for r := range a {
		a[r] = DivUp(a[r], n)
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

// FitsIn reports whether each amount above 0 is in b: as in kube-scheduler, a resource that is not requested may be
// overcommitted.
func (a Amounts) FitsIn(b Amounts) bool {
	for r := range a {
		if a[r] > 0 && a[r] > b[r] {
			return false
		}
	}
	return true
}

// IsZero reports whether all amounts are zero.
func (a Amounts) IsZero() bool { return a == Amounts{} }

// String returns amounts in the form "1.5 CPU and 2Gi memory".
func (a Amounts) String() string { return format.Requests(a[CPU], a[Memory]) }

// Less orders amounts, by CPU first.
func (a Amounts) Less(b Amounts) bool {
	for r := range a {
		if a[r] != b[r] {
			return a[r] < b[r]
		}
	}
	return false
}

// Millionth is the unit of rates: a rate of 100,000 is 10%.
const Millionth = 1_000_000

// Share returns a rate of the amounts, rounded up.
func (a Amounts) Share(rate int64) Amounts {
	for r := range a {
		a[r] = MulDivUp(a[r], rate, Millionth)
	}
	return a
}

// DivUp returns a / b, rounded up; b is at least 1.
func DivUp(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}

// MaxFraction returns the maximum of amount/total over the resources with a total.
func (a Amounts) MaxFraction(total Amounts) float64 {
	var largest float64
	for r := range a {
		if total[r] > 0 {
			largest = max(largest, float64(a[r])/float64(total[r]))
		}
	}
	return largest
}
