package resources

import (
	"cmp"
	"iter"
	"math"
	"unique"

	v1 "k8s.io/api/core/v1"
)

// ExtendedAmounts are amounts of resources by name, without zeros. It is comparable, and the zero value has none. Equal amounts share one
// immutable list, so that a copy is one word, and nothing is allocated for amounts that exist already.
type ExtendedAmounts struct{ first unique.Handle[extendedAmount] }

// extendedAmount is an element of a list, which is sorted by name.
type extendedAmount struct {
	name   v1.ResourceName
	amount int64
	rest   ExtendedAmounts
}

// ExtendedOf returns the amounts of the resources in a list that a function includes.
func ExtendedOf(list v1.ResourceList, includes func(v1.ResourceName) bool) (out ExtendedAmounts) {
	for name, quantity := range list {
		if includes(name) {
			out = out.With(name, Resource{Extended, name}.Amount(quantity))
		}
	}
	return out
}

// prepend returns the amounts and an amount whose name is before all others.
func (e ExtendedAmounts) prepend(name v1.ResourceName, amount int64) ExtendedAmounts {
	if amount == 0 {
		return e
	}
	return ExtendedAmounts{unique.Make(extendedAmount{name, amount, e})}
}

// Equal reports whether both sides are equal.
func (e ExtendedAmounts) Equal(other ExtendedAmounts) bool { return e == other }

// IsZero reports whether there are no amounts.
func (e ExtendedAmounts) IsZero() bool { return e == ExtendedAmounts{} }

// All returns the names and amounts, sorted by name.
func (e ExtendedAmounts) All() iter.Seq2[v1.ResourceName, int64] {
	return func(yield func(v1.ResourceName, int64) bool) {
		for !e.IsZero() {
			element := e.first.Value()
			if !yield(element.name, element.amount) {
				return
			}
			e = element.rest
		}
	}
}

// Get returns the amount of a resource, 0 if there is none.
func (e ExtendedAmounts) Get(name v1.ResourceName) int64 {
	for n, amount := range e.All() {
		if n == name {
			return amount
		}
	}
	return 0
}

// With returns the amounts with another amount of one resource.
func (e ExtendedAmounts) With(name v1.ResourceName, amount int64) ExtendedAmounts {
	return e.combine(ExtendedAmounts{}.prepend(name, amount-e.Get(name)), func(a, b int64) int64 { return a + b })
}

// Compare orders amounts by the amount of the first resource in which they differ.
func (e ExtendedAmounts) Compare(other ExtendedAmounts) int {
	switch {
	case e == other:
		return 0
	case e.IsZero():
		return -1
	case other.IsZero():
		return 1
	}
	a, b := e.first.Value(), other.first.Value()
	return cmp.Or(cmp.Compare(b.name, a.name), cmp.Compare(a.amount, b.amount), a.rest.Compare(b.rest))
}

// fitsIn reports whether each amount above 0 is in a capacity.
func (e ExtendedAmounts) fitsIn(capacity ExtendedAmounts) bool {
	for name, amount := range e.All() {
		if amount > 0 && amount > capacity.Get(name) {
			return false
		}
	}
	return true
}

// copies returns how many times the amounts fit in a capacity.
func (e ExtendedAmounts) copies(capacity ExtendedAmounts) int64 {
	n := int64(math.MaxInt64)
	for name, amount := range e.All() {
		n = min(n, quotient(capacity.Get(name), amount))
	}
	return n
}

// combine returns f of the amounts of each resource that either side has; f of zeros is 0.
func (e ExtendedAmounts) combine(other ExtendedAmounts, f func(a, b int64) int64) ExtendedAmounts {
	if e.IsZero() && other.IsZero() {
		return e
	}
	return e.merge(other, f)
}

// merge implements combine, unless both sides have no amounts.
func (e ExtendedAmounts) merge(other ExtendedAmounts, f func(a, b int64) int64) ExtendedAmounts {
	var a, b extendedAmount
	var order int
	switch {
	case other.IsZero():
		a, order = e.first.Value(), -1
	case e.IsZero():
		b, order = other.first.Value(), 1
	default:
		a, b = e.first.Value(), other.first.Value()
		order = cmp.Compare(a.name, b.name)
	}
	switch {
	case order < 0:
		return a.rest.combine(other, f).prepend(a.name, f(a.amount, 0))
	case order > 0:
		return e.combine(b.rest, f).prepend(b.name, f(0, b.amount))
	}
	return a.rest.combine(b.rest, f).prepend(a.name, f(a.amount, b.amount))
}
