package load

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
)

// TestNamesOf checks that a node has its addresses and its host name.
func TestNamesOf(t *testing.T) {
	node := clustertest.Addressed("node-1", "10.0.0.1", "node-1.internal")
	node.Labels = map[string]string{v1.LabelHostname: "host-1"}
	names := NamesOf([]*v1.Node{node})
	for _, host := range []string{"node-1", "10.0.0.1", "node-1.internal", "host-1"} {
		if got, _ := names.Resolve(host); got != "node-1" {
			t.Errorf("%s is %q", host, got)
		}
	}
}

// TestResolve checks the cases that the tests of the load sources do not cover.
func TestResolve(t *testing.T) {
	names := NamesOf([]*v1.Node{clustertest.Addressed("a", "b", "10.0.0.1"), clustertest.Addressed("b", "10.0.0.2", "10.0.0.1")})
	for host, want := range map[string]string{
		"a": "a", "b": "b", "10.0.0.2": "b", "10.0.0.1": "", "10.0.0.3": "", "": "", "c": "",
		"a.example.com": "a", "10.example.com": "",
	} {
		if got, ok := names.Resolve(host); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %t; want %q", host, got, ok, want)
		}
	}
	if got, ok := (Names{}).Resolve("anything"); got != "anything" || !ok {
		t.Error("without known nodes, a host is not resolved to itself")
	}
	if _, ok := NamesOf(nil).Resolve("anything"); ok {
		t.Error("in a cluster without nodes, a host is resolved")
	}
}

func TestHost(t *testing.T) {
	for instance, want := range map[string]string{
		"10.0.0.1:9100": "10.0.0.1", "10.0.0.1": "10.0.0.1", "[fd00::1]:9100": "fd00::1", "[fd00::1]": "fd00::1", "fd00::1": "fd00::1",
		"node:9100": "node", "node": "node", "": "", ":9100": "",
	} {
		if got := Host(instance); got != want {
			t.Errorf("%q: %q, want %q", instance, got, want)
		}
	}
}

// FuzzResolve checks that the host of any instance resolves to a known node or to none.
func FuzzResolve(f *testing.F) {
	for _, instance := range []string{"10.0.0.1:9100", "[::1]:9100", "[::1", "node-1.example.com", ":", "a.", ".a"} {
		f.Add(instance)
	}
	names := NamesOf([]*v1.Node{clustertest.Addressed("node-1", "10.0.0.1", "::1"), clustertest.Addressed("node-2", "10.0.0.1")})
	f.Fuzz(func(t *testing.T, instance string) {
		node, known := names.Resolve(Host(instance))
		if known != (node == "node-1" || node == "node-2") || !known && node != "" {
			t.Errorf("%q resolves to %q, known: %t", instance, node, known)
		}
	})
}
