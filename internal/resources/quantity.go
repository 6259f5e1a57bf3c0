package resources

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

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
