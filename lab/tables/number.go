package main

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// decimals returns the number of decimals of the published tables: none for integers, otherwise about four significant digits.
func decimals(v float64) int {
	switch size := math.Abs(v); {
	case v == math.Trunc(v) || size >= 1000:
		return 0
	case size >= 100:
		return 1
	case size >= 10:
		return 2
	}
	return format.MaxDecimals
}

// auto formats v with as many decimals as decimals returns for it.
func auto(v float64) string { return format.Format(v, decimals(v)) }
