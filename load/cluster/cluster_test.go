package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestFromLister(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	if err := store.Add(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{v1.LabelHostname: "host-1"}},
		Status: v1.NodeStatus{
			Capacity:    v1.ResourceList{"cpu": resource.MustParse("3900m"), "memory": resource.MustParse("16Gi")},
			Allocatable: v1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("12Gi")},
			Addresses: []v1.NodeAddress{
				{Type: v1.NodeInternalIP, Address: "10.0.0.1"},
				{Type: v1.NodeHostName, Address: "node-1.internal"},
			},
		},
	}); err != nil {
		t.Fatal(err)
	}
	got, err := FromLister(corelisters.NewNodeLister(store))()
	want := []Machine{{Name: "node-1", Addresses: []string{"10.0.0.1", "node-1.internal", "host-1"}, CPU: 3.9, Memory: 16 << 30}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestResolve checks the cases that the tests of the load sources do not cover.
func TestResolve(t *testing.T) {
	names := NamesOf([]Machine{{Name: "a", Addresses: []string{"b", "10.0.0.1"}}, {Name: "b", Addresses: []string{"10.0.0.2", "10.0.0.1"}}})
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
	names := NamesOf([]Machine{{Name: "node-1", Addresses: []string{"10.0.0.1", "::1"}}, {Name: "node-2", Addresses: []string{"10.0.0.1"}}})
	f.Fuzz(func(t *testing.T, instance string) {
		node, known := names.Resolve(Host(instance))
		if known != (node == "node-1" || node == "node-2") || !known && node != "" {
			t.Errorf("%q resolves to %q, known: %t", instance, node, known)
		}
	})
}
