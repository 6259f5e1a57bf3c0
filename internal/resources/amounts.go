package resources

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Amounts is an amount of each resource. Amounts are in [0, math.MaxInt64], except for the free amounts of a node, which are
// negative if the node is overcommitted. It is comparable.
type Amounts struct {
	// CPU is in millicores, Memory and EphemeralStorage are in bytes, Pods is a number of pods.
	CPU, Memory, EphemeralStorage, Pods int64
	// Extended are the amounts of other resources.
	Extended ExtendedAmounts
}

// CPUAndMemory returns the CPU and memory of a list.
func CPUAndMemory(list v1.ResourceList) Amounts {
	return Amounts{
		CPU: CPUResource.Amount(list[v1.ResourceCPU]), Memory: MemoryResource.Amount(list[v1.ResourceMemory]),
	}
}

// Get returns the amount of a resource.
func (a Amounts) Get(r Resource) int64 {
	switch r.index {
	case CPU:
		return a.CPU
	case Memory:
		return a.Memory
	case EphemeralStorage:
		return a.EphemeralStorage
	case Pods:
		return a.Pods
	default:
		return a.Extended.Get(r.name)
	}
}

// All returns the amounts that are not 0, by name.
func (a Amounts) All() iter.Seq2[Resource, int64] {
	return func(yield func(Resource, int64) bool) {
		for _, r := range commonResources {
			if amount := a.Get(r); amount != 0 && !yield(r, amount) {
				return
			}
		}
		for name, amount := range a.Extended.All() {
			if !yield(Resource{Extended, name}, amount) {
				return
			}
		}
	}
}

// Combine returns f of both amounts of each resource; f of zeros is 0.
func (a Amounts) Combine(b Amounts, f func(a, b int64) int64) Amounts {
	return Amounts{
		f(a.CPU, b.CPU), f(a.Memory, b.Memory), f(a.EphemeralStorage, b.EphemeralStorage), f(a.Pods, b.Pods),
		a.Extended.combine(b.Extended, f),
	}
}

// Apply returns f of each amount; f of 0 is 0.
func (a Amounts) Apply(f func(int64) int64) Amounts {
	return a.Combine(Amounts{}, func(amount, _ int64) int64 { return f(amount) })
}

// Add returns the sum, saturated at math.MaxInt64.
func (a Amounts) Add(b Amounts) Amounts {
	return Amounts{
		Add(a.CPU, b.CPU), Add(a.Memory, b.Memory),
		Add(a.EphemeralStorage, b.EphemeralStorage), Add(a.Pods, b.Pods),
		a.Extended.combine(b.Extended, Add),
	}
}

// Subtract returns the difference, at least 0.
func (a Amounts) Subtract(b Amounts) Amounts {
	return Amounts{
		max(0, a.CPU-b.CPU), max(0, a.Memory-b.Memory),
		max(0, a.EphemeralStorage-b.EphemeralStorage), max(0, a.Pods-b.Pods),
		a.Extended.combine(b.Extended, func(a, b int64) int64 { return max(0, a-b) }),
	}
}

// Minus returns the difference, which is negative where b is larger.
func (a Amounts) Minus(b Amounts) Amounts {
	return Amounts{
		a.CPU - b.CPU, a.Memory - b.Memory,
		a.EphemeralStorage - b.EphemeralStorage, a.Pods - b.Pods,
		a.Extended.combine(b.Extended, func(a, b int64) int64 { return a - b }),
	}
}

// Multiply returns n times the amounts, saturated at math.MaxInt64.
func (a Amounts) Multiply(n int64) Amounts {
	return Amounts{
		Multiply(a.CPU, n), Multiply(a.Memory, n),
		Multiply(a.EphemeralStorage, n), Multiply(a.Pods, n),
		a.Extended.combine(a.Extended, func(amount, _ int64) int64 { return Multiply(amount, n) }),
	}
}

// DivideUp returns the amounts divided by n, rounded up; n is at least 1.
func (a Amounts) DivideUp(n int64) Amounts {
	return a.Apply(func(amount int64) int64 { return DivUp(amount, n) })
}

// Min returns the smaller amount of each resource.
func (a Amounts) Min(b Amounts) Amounts {
	return Amounts{
		min(a.CPU, b.CPU), min(a.Memory, b.Memory),
		min(a.EphemeralStorage, b.EphemeralStorage), min(a.Pods, b.Pods),
		a.Extended.combine(b.Extended, func(a, b int64) int64 { return min(a, b) }),
	}
}

// Max returns the larger amount of each resource.
func (a Amounts) Max(b Amounts) Amounts {
	return Amounts{
		max(a.CPU, b.CPU), max(a.Memory, b.Memory),
		max(a.EphemeralStorage, b.EphemeralStorage), max(a.Pods, b.Pods),
		a.Extended.combine(b.Extended, func(a, b int64) int64 { return max(a, b) }),
	}
}

// FitsIn reports whether each amount above 0 is in b: as in kube-scheduler, a resource that is not requested may be
// overcommitted.
func (a Amounts) FitsIn(b Amounts) bool {
	if a.CPU > 0 && a.CPU > b.CPU || a.Memory > 0 && a.Memory > b.Memory ||
		a.EphemeralStorage > 0 && a.EphemeralStorage > b.EphemeralStorage || a.Pods > 0 && a.Pods > b.Pods {
		return false
	}
	return a.Extended.IsZero() || a.Extended.fitsIn(b.Extended)
}

// Copies returns how many times the amounts fit in a capacity, which may be negative; math.MaxInt64 if they are zero.
func (a Amounts) Copies(capacity Amounts) int64 {
	n := min(quotient(capacity.CPU, a.CPU), quotient(capacity.Memory, a.Memory))
	n = min(n, quotient(capacity.EphemeralStorage, a.EphemeralStorage), quotient(capacity.Pods, a.Pods))
	if !a.Extended.IsZero() {
		n = min(n, a.Extended.copies(capacity.Extended))
	}
	return max(0, n)
}

// quotient returns a / b, math.MaxInt64 if b is not positive.
func quotient(a, b int64) int64 {
	if b <= 0 {
		return math.MaxInt64
	}
	return a / b
}

// IsZero reports whether all amounts are zero.
func (a Amounts) IsZero() bool { return a == Amounts{} }

// String returns amounts in the form "1.5 CPU and 2Gi memory".
func (a Amounts) String() string { return format.Requests(a.CPU, a.Memory) }

// Compare orders amounts by CPU first.
func (a Amounts) Compare(b Amounts) int {
	switch {
	case a.CPU != b.CPU:
		return cmp.Compare(a.CPU, b.CPU)
	case a.Memory != b.Memory:
		return cmp.Compare(a.Memory, b.Memory)
	}
	return cmp.Or(cmp.Compare(a.EphemeralStorage, b.EphemeralStorage), cmp.Compare(a.Pods, b.Pods), a.Extended.Compare(b.Extended))
}

// Millionth is the unit of rates: a rate of 100,000 is 10%.
const Millionth = 1_000_000

// Share returns a rate of the amounts, rounded up.
func (a Amounts) Share(rate int64) Amounts {
	return a.Apply(func(amount int64) int64 { return MulDivUp(amount, rate, Millionth) })
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
	for r, all := range total.All() {
		if all > 0 {
			largest = max(largest, float64(a.Get(r))/float64(all))
		}
	}
	return largest
}

// Add returns a + b.
func Add(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// Multiply returns a x b. Negative factors count as 0.
func Multiply(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// MulDiv returns a x b / c, rounded down. Negative factors count as 0; c must be at least 1.
func MulDiv(a, b, c int64) int64 {
	quotient, _ := mulDiv(a, b, c)
	return quotient
}

// MulDivUp returns a x b / c, rounded up. Negative factors count as 0; c must be at least 1.
func MulDivUp(a, b, c int64) int64 {
	quotient, remainder := mulDiv(a, b, c)
	if remainder > 0 {
		quotient = Add(quotient, 1)
	}
	return quotient
}

func mulDiv(a, b, c int64) (quotient int64, remainder uint64) {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64)), r
}

// Bounds of quantities. Kubernetes accepts any 32-bit exponent, and computes with all
// digits of the number: parsing 1e-2147483647 or comparing 1e2147483647 takes hours.
const (
	// maxQuantityLength is the maximum length of a quantity as text.
	maxQuantityLength = 64
	// maxQuantityExponent is the maximum absolute value of the exponent of a quantity:
	// more than the bytes of all computers, less than a nano.
	maxQuantityExponent = 30
)

// ParseQuantity parses a quantity from outside. It returns an error for texts that
// resource.ParseQuantity does not parse, and for texts whose length or exponent exceeds
// the bounds, without computing with them.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := CheckQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		err = fmt.Errorf("invalid value %q: must be a quantity such as 500m, 2.5, 4G or 4Gi", text)
	}
	return quantity, err
}

// CheckQuantity returns an error for a text whose length or exponent exceeds the bounds
// of quantities. Other texts can be parsed by resource.ParseQuantity in a short time.
func CheckQuantity(text string) error {
	if len(text) > maxQuantityLength {
		return fmt.Errorf("has %d characters, at most %d are allowed", len(text), maxQuantityLength)
	}
	i := strings.LastIndexAny(text, "eE")
	if i < 0 {
		return nil
	}
	exponent := strings.TrimLeft(strings.TrimLeft(text[i+1:], "+-"), "0")
	if len(exponent) > 2 || len(exponent) == 2 && exponent > fmt.Sprint(maxQuantityExponent) {
		return fmt.Errorf("%q: the exponent must be from -%d to %d", text, maxQuantityExponent, maxQuantityExponent)
	}
	return nil
}

// QuantityOf returns the quantity in a value of decoded JSON, which is a string or a number. ok is false for other values, and for
// texts that ParseQuantity does not accept.
func QuantityOf(value any) (quantity resource.Quantity, ok bool) {
	switch value.(type) {
	case string, int64, float64:
		quantity, err := ParseQuantity(fmt.Sprint(value))
		return quantity, err == nil
	}
	return quantity, false
}
