package manifest

import (
	"strings"
	"testing"
)

// FuzzReadHub checks that reading a hub ends, with objects or with an error that has a message.
func FuzzReadHub(f *testing.F) {
	f.Add("apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: a}\n")
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{"kind":"ManagedCluster","apiVersion":"cluster.open-cluster-management.io/v1"}]}`)
	f.Add("kind: List\nitems: [1, null, {}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, content string) {
		read, err := ReadHub([]string{"-"}, strings.NewReader(content))
		if (read == nil) != (err != nil) || err != nil && err.Error() == "" {
			t.Errorf("%v, %v", read, err)
		}
	})
}

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
