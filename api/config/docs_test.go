package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestDocumentedArguments checks that the page of each plugin lists all of its arguments.
func TestDocumentedArguments(t *testing.T) {
	for _, args := range allArgs() {
		kind := reflect.TypeOf(args).Elem()
		plugin := strings.TrimSuffix(kind.Name(), "Args")
		page, err := os.ReadFile(filepath.Join("../../docs/plugins", strings.ToLower(plugin)+".md"))
		must.Succeed(t, err)
		for field := range kind.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(page), "\n| `"+name) {
				t.Errorf("the page of %s lacks the argument %s", plugin, name)
			}
		}
	}
}
