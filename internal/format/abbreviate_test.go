package format

import (
	"testing"
)

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
