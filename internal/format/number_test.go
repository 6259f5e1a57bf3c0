package format

import (
	"math"
	"testing"
)

func TestFormat(t *testing.T) {
	for _, tc := range []struct {
		value    float64
		decimals int
		want     string
		signed   string
	}{
		{0, 0, "0", "0"},
		{math.Copysign(0, -1), 2, "0.00", "0.00"},
		{-0.0001, 2, "0.00", "0.00"},
		{0.0001, 2, "0.00", "0.00"},
		{-0.5, 1, Minus + "0.5", Minus + "0.5"},
		{999, 0, "999", "+999"},
		{1000, 0, "1" + ThinSpace + "000", "+1" + ThinSpace + "000"},
		{-1234567.89, 1, Minus + "1" + ThinSpace + "234" + ThinSpace + "567.9", Minus + "1" + ThinSpace + "234" + ThinSpace + "567.9"},
		{math.NaN(), 2, "–", "–"},
		{math.Inf(-1), 2, "–", "–"},
	} {
		if got := Format(tc.value, tc.decimals); got != tc.want {
			t.Errorf("Format(%v, %d) = %q, want %q", tc.value, tc.decimals, got, tc.want)
		}
		if got := Signed(tc.value, tc.decimals); got != tc.signed {
			t.Errorf("Signed(%v, %d) = %q, want %q", tc.value, tc.decimals, got, tc.signed)
		}
	}
}

func TestThings(t *testing.T) {
	for want, got := range map[string]string{
		"1 node": Things(1, "node"), "0 nodes": Things(0, "node"), "1" + ThinSpace + "000 nodes": Things(1000, "node"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
