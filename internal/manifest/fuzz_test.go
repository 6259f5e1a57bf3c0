package manifest

import (
	"strings"
	"testing"
)

// FuzzEachObject checks that every object has fields, or that there is an error.
func FuzzEachObject(f *testing.F) {
	f.Add("kind: PodList\nitems: [{metadata: {name: a}}]")
	f.Add(`{"kind":"List","items":[1]}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, content string) {
		err := EachObject(Files([]string{"-"}, strings.NewReader(content)), func(_, kind string, object map[string]any) error {
			if kind == "" || object["kind"] != kind {
				t.Errorf("kind %q, object %v", kind, object)
			}
			return nil
		})
		if err != nil && err.Error() == "" {
			t.Error("an error without a message")
		}
	})
}
