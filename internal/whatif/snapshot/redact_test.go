package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// decisions returns the scores of all nodes for all pending pods, without names.
func decisions(t *rapid.T, objects *manifest.Objects, reading *load.Reading) []string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, err := engine.DefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	cluster := engine.Cluster{Nodes: objects.Nodes, Running: objects.Running, References: objects.Referred()}
	engine, err := engine.New(ctx, cluster, engine.Options{Config: config, Load: reading, Clock: func() time.Time { return instant }})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, pod := range objects.Pending {
		scores, err := engine.Score(ctx, pod, "")
		if err != nil {
			t.Fatal(err)
		}
		for j, node := range scores.Nodes {
			plugins, err := json.Marshal(node.Plugins)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("pod %d, node %d: selected %t, feasible %t, total %d, %s",
				i, j, node.Name == scores.Selected, node.Feasible, node.Total, plugins))
		}
	}
	return out
}

// roundTrip writes and reads a snapshot. It returns the snapshot and all its contents.
func roundTrip(t interface{ Fatal(...any) }, s *Snapshot) (*Snapshot, []byte) {
	var archive bytes.Buffer
	if err := s.Write(&archive); err != nil {
		t.Fatal(err)
	}
	read, err := Read(bytes.NewReader(archive.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var content []byte
	for _, list := range read.Lists {
		content = append(content, list.encode()...)
	}
	about, err := json.Marshal(read.About)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(read.Load.Nodes)) {
		content = append(content, name...)
	}
	return read, append(content, about...)
}

// TestSnapshotPreservesDecisions checks that scheduling decisions for a snapshot and for a redacted
// snapshot equal the decisions for the cluster itself, that no snapshot has secrets, and that a redacted
// snapshot has no names.
func TestSnapshotPreservesDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generated, reading := cluster(t)
		complete, err := manifest.ReadFrom(generated.source)
		if err != nil {
			t.Fatal(err)
		}
		want := decisions(t, complete, &reading)

		plain, err := FromDocuments(instant, generated.source)
		if err != nil {
			t.Fatal(err)
		}
		plain.SetLoad(reading)
		redacted, err := plain.Redact([]byte{rapid.Byte().Draw(t, "key")})
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Snapshot{"plain": plain, "redacted": redacted} {
			read, content := roundTrip(t, s)
			objects, err := read.Cluster()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(objects.Warnings) > 0 {
				t.Errorf("%s: warnings %q", name, objects.Warnings)
			}
			if diff := cmp.Diff(want, decisions(t, objects, read.Load)); diff != "" {
				t.Errorf("%s: decisions differ (-cluster +snapshot):\n%s", name, diff)
			}
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s: has secrets", name)
			}
			if found := bytes.Contains(content, []byte(private)); found == (name == "redacted") {
				t.Errorf("%s: has names: %t", name, found)
			}
		}
	})
}

// TestPseudonymsDependOnKey checks that pseudonyms depend on the key only.
func TestPseudonymsDependOnKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generated, reading := cluster(t)
		plain, err := FromDocuments(instant, generated.source)
		if err != nil {
			t.Fatal(err)
		}
		plain.SetLoad(reading)
		archive := func(key string) string {
			redacted, err := plain.Redact([]byte(key))
			if err != nil {
				t.Fatal(err)
			}
			_, content := roundTrip(t, redacted)
			return string(content)
		}
		if first, again := archive("a"), archive("a"); first != again {
			t.Error("the same key gives different pseudonyms")
		}
		if archive("a") == archive("b") {
			t.Error("different keys give the same pseudonyms")
		}
	})
}

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
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		group, _, _ := strings.Cut(fmt.Sprint(object["apiVersion"]), "/")
		if object["kind"] == "Node" {
			group = ""
		}
		kept, _ := kindOf(group, object["kind"].(string)).rule.rule(object, p)
		if raw, err := json.Marshal(kept.(map[string]any)["spec"]); err != nil || string(raw) != want {
			t.Errorf("%s: kept %s, %v, want %s", text, raw, err, want)
		}
	}
}
