package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestLargePolicy checks that a file that is too large is read only up to the limit.
func TestLargePolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "apiVersion: plimsoll.dev/v1alpha1\nkind: ResourceSlack\nmetadata: {name: general}\nspec: {minRate: 10%}\n"
	must.Succeed(t, os.WriteFile(path, []byte(policy), 0o600))
	for _, tc := range []struct {
		size int64
		want string // part of the error, empty for none
	}{
		{int64(len(policy)), ""},
		{1 << 30, "policy.yaml: exceeds the limit of 1 MiB"}, // sparse
	} {
		must.Succeed(t, os.Truncate(path, tc.size))
		_, err := SlackPolicy(path, "rate", "")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d bytes: %v, want %q", tc.size, err, tc.want)
		}
	}
}

// TestInvalidPolicy checks that errors name the field, and what it may be. A file with several policies is refused: one of them would be
// ignored.
func TestInvalidPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "---\napiVersion: plimsoll.dev/v1alpha1\nkind: ResourceSlack\nmetadata: {name: general}\nspec: {minRate: 10%}\n"
	for _, tc := range []struct{ text, want string }{
		{"# comment\n" + policy + "---\n# comment\n", ""},
		{policy + policy, "policy.yaml: found 2 objects: must be one ResourceSlack"},
		{strings.ReplaceAll(policy, "10%", "10"), "policy.yaml: spec.minRate: invalid value 10: must be a percentage such as 10%"},
		{strings.ReplaceAll(policy, "{minRate", "\n\t{minRate"), "line 6: found character that cannot start any token, such as a tab: indent"},
		{policy + "image: x", `unknown field "image": must be one of kind, apiVersion, metadata, spec, status`},
		{"# comment\n", "policy.yaml: found 0 objects: must be one ResourceSlack"},
	} {
		must.Succeed(t, os.WriteFile(path, []byte(tc.text), 0o600))
		_, err := SlackPolicy(path, "rate", "")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
}
