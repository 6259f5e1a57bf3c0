package load

import (
	"net"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Inventory returns the current nodes. A nil Inventory means that the nodes are unknown.
type Inventory func() ([]*v1.Node, error)

// FromLister returns the inventory of a lister.
func FromLister(nodes corelisters.NodeLister) Inventory {
	return func() ([]*v1.Node, error) { return nodes.List(labels.Everything()) }
}

// Names maps hosts to nodes.
type Names struct {
	// nodes are node names by name and address. The value is empty if several nodes have the address.
	nodes map[string]string
}

// NamesOf returns the names of nodes.
func NamesOf(nodes []*v1.Node) Names {
	names := Names{nodes: make(map[string]string, 3*len(nodes))}
	add := func(address, node string) {
		if other, found := names.nodes[address]; found && other != node {
			node = ""
		}
		names.nodes[address] = node
	}
	for _, node := range nodes {
		for _, address := range node.Status.Addresses {
			add(address.Address, node.Name)
		}
		if host := node.Labels[v1.LabelHostname]; host != "" {
			add(host, node.Name)
		}
	}
	// The name of a node takes precedence over the addresses of other nodes.
	for _, node := range nodes {
		names.nodes[node.Name] = node.Name
	}
	return names
}

// Resolve returns the node of a host, by name, address, or the first label of a domain name, and
// whether there is one. If the nodes are unknown, the host itself is the node.
func (n Names) Resolve(host string) (string, bool) {
	if n.nodes == nil {
		return host, host != ""
	}
	if node := n.nodes[host]; node != "" {
		return node, true
	}
	if short, _, dotted := strings.Cut(host, "."); dotted && net.ParseIP(host) == nil {
		node := n.nodes[short]
		return node, node != ""
	}
	return "", false
}

// Host returns the host of host:port, or the argument if it has no port.
func Host(instance string) string {
	if host, _, err := net.SplitHostPort(instance); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(instance, "["), "]")
}
