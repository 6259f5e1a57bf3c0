package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLargePolicy checks that a file that is too large is read only up to the limit.
func TestLargePolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "apiVersion: plimsoll.dev/v1alpha1\nkind: ResourceSlack\nmetadata: {name: general}\nspec: {minRate: 10%}\n"
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		size int64
		want string // part of the error, empty for none
	}{
		{int64(len(policy)), ""},
		{1 << 30, "policy.yaml: the file is larger than 1048576 bytes"}, // sparse
	} {
		if err := os.Truncate(path, tc.size); err != nil {
			t.Fatal(err)
		}
		_, err := SlackPolicy(path, "rate", "", false)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d bytes: %v, want %q", tc.size, err, tc.want)
		}
	}
}
