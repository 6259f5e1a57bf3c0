package format

import "testing"

func TestOf(t *testing.T) {
	for want, got := range map[string]string{
		"1 node":          Of(1, "node"),
		"0 nodes":         Of(0, "node"),
		"-1 nodes":        Of(-1, "node"),
		"2 nodes":         Of(int64(2), "node"),
		"-1 pods":         Of(-1, "pod"),
		"3 policies":      Of(uint64(3), "policy"),
		"1 policy":        Of(1, "policy"),
		"2 days":          Of(2, "day"),
		"2 keys":          Of(2, "key"),
		"2 virtual pods":  Of(2, "virtual pod"),
		"0 of 1 buffer":   Part(0, 1, "buffer"),
		"1 of 2 buffers":  Part(1, 2, "buffer"),
		"1 pod is":        Are(1, "pod"),
		"0 pods are":      Are(0, "pod"),
		"0 of 1 pod is":   PartAre(0, 1, "pod"),
		"1 of 2 pods is":  PartAre(1, 2, "pod"),
		"0 of 2 pods are": PartAre(0, 2, "pod"),
		"is":              Form(1, "is", "are"),
		"are":             Form(0, "is", "are"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
