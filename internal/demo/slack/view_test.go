package slack

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestFormatAmounts(t *testing.T) {
	for memory, want := range map[string]string{
		"32Gi":       "0.8 CPUs, 32Gi",
		"1639Mi":     "0.8 CPUs, 1639Mi",
		"1717986919": "0.8 CPUs, 1639Mi", // 1638.4 Mi
		"0":          "0.8 CPUs, 0",
	} {
		got := formatAmounts(v1.ResourceList{"cpu": resource.MustParse("800m"), "memory": resource.MustParse(memory)})
		if got != want {
			t.Errorf("memory %s: got %q, want %q", memory, got, want)
		}
	}
}
