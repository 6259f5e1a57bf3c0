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

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// decisions are the scores of all nodes for all pending pods, without any names.
func decisions(t *rapid.T, objects *manifest.Objects, reading *load.Reading) []string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, err := engine.DefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := engine.New(ctx, engine.Cluster{Nodes: objects.Nodes, Running: objects.Running, Others: objects.Referred()}, engine.Options{Config: config, Load: reading, Now: instant})
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
			out = append(out, fmt.Sprintf("pod %d, node %d: selected %t, feasible %t, total %d, %s", i, j, node.Name == scores.Selected, node.Feasible, node.Total, plugins))
		}
	}
	return out
}

// through returns a snapshot as it comes out of an archive.
func through(t interface{ Fatal(...any) }, s *Snapshot) (*Snapshot, []byte) {
	var archive bytes.Buffer
	if err := s.Write(&archive); err != nil {
		t.Fatal(err)
	}
	read, err := Read(bytes.NewReader(archive.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, list := range read.Lists {
		all = append(all, list.encode()...)
	}
	about, err := json.Marshal(read.About)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(read.Load.Nodes)) {
		all = append(all, name...)
	}
	return read, append(all, about...)
}

// A scheduler decides over a snapshot, and over a redacted one, as over the cluster
// itself; a snapshot has nothing that is nobody's business, and a redacted one no
// names.
func TestDecisionsAreThoseOfTheCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		made, reading := cluster(t)
		whole, err := manifest.ReadFrom(made.source)
		if err != nil {
			t.Fatal(err)
		}
		want := decisions(t, whole, &reading)

		plain, err := FromDocuments(instant, made.source)
		if err != nil {
			t.Fatal(err)
		}
		plain.SetLoad(reading)
		redacted, err := plain.Redact([]byte{rapid.Byte().Draw(t, "key")})
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Snapshot{"plain": plain, "redacted": redacted} {
			read, content := through(t, s)
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
			if bytes.Contains(content, []byte(hush)) {
				t.Errorf("%s: has what is nobody's business", name)
			}
			if found := bytes.Contains(content, []byte(acme)); found == (name == "redacted") {
				t.Errorf("%s: has names: %t", name, found)
			}
		}
	})
}

// With one key the pseudonyms are the same, with another they are others.
func TestPseudonymsAreOfTheKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		made, reading := cluster(t)
		plain, err := FromDocuments(instant, made.source)
		if err != nil {
			t.Fatal(err)
		}
		plain.SetLoad(reading)
		archive := func(key string) string {
			redacted, err := plain.Redact([]byte(key))
			if err != nil {
				t.Fatal(err)
			}
			_, content := through(t, redacted)
			return string(content)
		}
		if first, again := archive("a"), archive("a"); first != again {
			t.Error("the same key gives other pseudonyms")
		}
		if archive("a") == archive("b") {
			t.Error("another key gives the same pseudonyms")
		}
	})
}

func TestPseudonyms(t *testing.T) {
	p := &pseudonyms{key: []byte("k"), numeric: map[string]bool{"slots": true}}
	p.number([]string{"b", "a"})
	for _, tc := range []struct{ what, got, want string }{
		{"a node's host name is its name", p.labelValue("kubernetes.io/hostname", "n1"), p.name("node", "n1")},
		{"a namespace's label is its name", p.labelValue("kubernetes.io/metadata.name", "shop"), p.name("namespace", "shop")},
		{"the default namespace stays", p.name("namespace", "default"), "default"},
		{"clusters keep their order", p.name("managedcluster", "b"), "managedcluster-000002"},
		{"a cluster's namespace has its name", p.name("namespace", "b"), "managedcluster-000002"},
		{"a standard key stays", p.labelKey("topology.kubernetes.io/zone"), "topology.kubernetes.io/zone"},
		{"a role that somebody made up does not", strings.TrimRight(p.labelKey("node-role.kubernetes.io/pay"), lowerLetters), "key-"},
		{"what is compared as a number stays", p.labelValue("slots", "7"), "7"},
		{"no value stays none", p.labelValue("any", ""), ""},
		{"an image without a tag is the latest", p.image("acme/web"), p.image("acme/web:latest")},
		{"a registry's port is no tag", p.image("acme:5000/web"), p.image("acme:5000/web:latest")},
		{"every address stays every address", p.address("0.0.0.0"), "0.0.0.0"},
		{
			"a volume of two zones is of both", p.labelValue("topology.kubernetes.io/zone", "a__b"),
			p.labelValue("topology.kubernetes.io/zone", "a") + "__" + p.labelValue("topology.kubernetes.io/zone", "b"),
		},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, tc.got, tc.want)
		}
	}
	if p.labelValue("other", "7") == "7" {
		t.Error("what nobody compares as a number stays")
	}
}

const lowerLetters = "abcdefghijklmnopqrstuvwxyz234567"
