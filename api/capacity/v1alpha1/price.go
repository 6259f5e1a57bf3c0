package v1alpha1

import (
	"fmt"
	"math"
	"strconv"
)

// maxPrice is the maximum price of a node for an hour.
const maxPrice = 1_000_000

// ParsePrice returns a price in millionths. The text must not be empty.
func ParsePrice(text string) (int64, error) {
	price, err := strconv.ParseFloat(text, 64)
	if err != nil || !(price >= 0 && price <= maxPrice) {
		return 0, fmt.Errorf("found %q: must be a decimal number in [0, %d]", text, maxPrice)
	}
	return int64(math.Round(price * 1e6)), nil
}
