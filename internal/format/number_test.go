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

func TestCores(t *testing.T) {
	for milli, want := range map[int64]string{0: "0", 10200: "10.2", 102000: "102", 1: "0.001", 49800: "49.8"} {
		if got := Cores(milli); got != want {
			t.Errorf("%d: %s, want %s", milli, got, want)
		}
	}
}

// 374784 / 1024 = 366; 37479 / 1024 = 36.6; 1536 / 1024 = 1.5; 1000 bytes / 1024 < 1.
func TestBytes(t *testing.T) {
	const mebibyte = 1 << 20
	for bytes, want := range map[int64]string{
		0: "0", 374784 * mebibyte: "366Gi", 37479 * mebibyte: "36.6Gi", 1536 * mebibyte: "1.5Gi", 1000: "1000", 2048 << 40: "2Pi",
	} {
		if got := Bytes(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for v, want := range map[float64][2]string{
		0: {"0", "0"}, 999: {"999", "+999"}, -1234567.6: {"-1,234,568", "-1,234,568"}, 0.5: {"0.500", "+0.500"},
		0.0004: {"0.000", "0"}, -0.05: {"-0.050", "-0.050"}, 12.345: {"12.3", "+12.3"}, 0.125: {"0.125", "+0.125"}, 1.5: {"1.50", "+1.50"}, 347.6: {"348", "+348"}, 9.996: {"10.0", "+10.0"}, -1234.5: {"-1,234", "-1,234"}, 99.999: {"100", "+100"},
	} {
		if got := [2]string{Plain(v), PlainSigned(v)}; got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
