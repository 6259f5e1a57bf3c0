package kinds

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestPseudonyms(t *testing.T) {
	p := &pseudonyms{key: []byte("k"), numeric: map[string]bool{"slots": true}}
	p.numberClusters([]string{"b", "a"})
	for _, tc := range []struct{ name, got, want string }{
		{"the hostname label is the name of the node", p.labelValue("kubernetes.io/hostname", "n1"), p.name("node", "n1")},
		{
			"the metadata.name label is the name of the namespace", p.labelValue("kubernetes.io/metadata.name", "shop"),
			p.name("namespace", "shop"),
		},
		{"the default namespace is kept", p.name("namespace", "default"), "default"},
		{"clusters keep their order", p.name("managedcluster", "b"), "managedcluster-000002"},
		{"the namespace of a cluster has its name", p.name("namespace", "b"), "managedcluster-000002"},
		{"a standard key is kept", p.labelKey("topology.kubernetes.io/zone"), "topology.kubernetes.io/zone"},
		{"a custom role is replaced", strings.TrimRight(p.labelKey("node-role.kubernetes.io/pay"), lowerLetters), "key-"},
		{"a value that is compared as a number is kept", p.labelValue("slots", "7"), "7"},
		{"an empty value is kept", p.labelValue("any", ""), ""},
		{"an image without a tag has the tag latest", p.image("acme/web"), p.image("acme/web:latest")},
		{"the port of a registry is not a tag", p.image("acme:5000/web"), p.image("acme:5000/web:latest")},
		{"the wildcard address is kept", p.address("0.0.0.0"), "0.0.0.0"},
		{
			"a volume of two zones has both", p.labelValue("topology.kubernetes.io/zone", "a__b"),
			p.labelValue("topology.kubernetes.io/zone", "a") + "__" + p.labelValue("topology.kubernetes.io/zone", "b"),
		},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, tc.got, tc.want)
		}
	}
	if p.labelValue("other", "7") == "7" {
		t.Error("a number that is not compared as a number is kept")
	}
}

const lowerLetters = "abcdefghijklmnopqrstuvwxyz234567"

// TestReferencesHideKinds checks that references to objects of kinds of other projects have neither the kind nor its group, that
// references to known kinds keep both, and that a value that is not a text is dropped with its name replaced.
func TestReferencesHideKinds(t *testing.T) {
	buffer := func(group, kind string) string {
		return fmt.Sprintf(`{"apiVersion":"autoscaling.x-k8s.io/v1beta1","kind":"CapacityBuffer","spec":{"scalableRef":`+
			`{"apiGroup":%q,"kind":%q,"name":"a"}}}`, group, kind)
	}
	p := NewRedactor([]byte("k")).p
	for text, want := range map[string]string{
		buffer("apps", "Deployment"): `{"scalableRef":{"apiGroup":"apps","kind":"Deployment","name":"` + p.name("deployment", "a") + `"}}`,
		buffer("shop.example.com", "PaymentQueue"): `{"scalableRef":{"apiGroup":"redacted/v1","kind":"Owner","name":"` +
			p.name("owner", "a") + `"}}`,
		`{"kind":"Node","spec":{"taints":[{"key":"team","value":{"secret":1},"effect":"NoSchedule"}]}}`: `{"taints":[{"effect":"NoSchedule","key":"` +
			p.labelKey("team") + `"}]}`,
	} {
		var object map[string]any
		must.Succeed(t, json.Unmarshal([]byte(text), &object))
		group, _, _ := strings.Cut(fmt.Sprint(object["apiVersion"]), "/")
		if object["kind"] == "Node" {
			group = ""
		}
		kept, _ := Of(group, object["kind"].(string)).rule.rule(object, p)
		if raw, err := json.Marshal(kept.(map[string]any)["spec"]); err != nil || string(raw) != want {
			t.Errorf("%s: kept %s, %v, want %s", text, raw, err, want)
		}
	}
}
