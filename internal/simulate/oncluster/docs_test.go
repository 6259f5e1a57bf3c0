package oncluster

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// docs/tune.md has the rights of users.
func TestDocumentedRights(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tune.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```yaml\napiVersion: rbac")
	block, _, _ = strings.Cut(block, "```")
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict([]byte("apiVersion: rbac"+block), &role); !found || err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(UserRules(), role.Rules); diff != "" {
		t.Error(diff)
	}
}
