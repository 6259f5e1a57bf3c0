package format

import "testing"

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
		0: {"0", "0"}, 999: {"999", "+999"}, -1234567.6: {"-1,234,568", "-1,234,568"}, 0.5: {"0.50", "+0.50"},
		0.0004: {"0.000", "0"}, -0.05: {"-0.050", "-0.050"}, 12.345: {"12.35", "+12.35"}, 0.125: {"0.12", "+0.12"}, -1234.5: {"-1,234", "-1,234"}, 99.999: {"100.00", "+100.00"},
	} {
		if got := [2]string{Plain(v), PlainSigned(v)}; got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
