package whatif

import "testing"

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3: "+3", -3: "-3", 0.125: "+0.12", -0.0004: "0", 0.0123: "+0.012", -1234.5: "-1,234",
		99.999: "+100.00",
	} {
		if got := formatSigned(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
}
