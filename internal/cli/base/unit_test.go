package base

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestUnits(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "10200m": "10.2", "102": "102", "1m": "0.001", "49800m": "49.8",
	} {
		if got := FormatCPU(v1.ResourceList{v1.ResourceCPU: resource.MustParse(text)}); got != want {
			t.Errorf("CPU %s: %s, want %s", text, got, want)
		}
	}
	// 374784 / 1024 = 366; 37479 / 1024 = 36.6; 1536 / 1024 = 1.5; 1000 bytes / 1024 < 1.
	for text, want := range map[string]string{
		"0": "0", "374784Mi": "366Gi", "37479Mi": "36.6Gi", "1536Mi": "1.5Gi", "1000": "1000", "200Gi": "200Gi", "2048Ti": "2Pi",
	} {
		if got := FormatMemory(v1.ResourceList{v1.ResourceMemory: resource.MustParse(text)}); got != want {
			t.Errorf("memory %s: %s, want %s", text, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := FormatCount(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
