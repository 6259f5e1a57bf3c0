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

func TestAbbreviate(t *testing.T) {
	for _, tc := range []struct {
		limit     int
		separator string
		want      string
	}{
		{3, ", ", "a, b, c"},
		{2, ", ", "a, b and 1 more"},
		{1, "; ", "a; and 2 more"},
	} {
		if got := Abbreviate([]string{"a", "b", "c"}, tc.limit, tc.separator); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

func TestShorten(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "0123456789": "0123456789", "0123456789x": "0123456...", "012345äöü": "012345..."} {
		if got := Shorten(text, 10); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
