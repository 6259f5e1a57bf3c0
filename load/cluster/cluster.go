// Package cluster tells sources of load what nodes there are: under which
// addresses others know them, and how much they have.
package cluster

import (
	"fmt"
	"net"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Machine is a node without its load.
type Machine struct {
	Name string
	// Addresses are its IP addresses and host names.
	Addresses []string
	// CPU is its capacity in cores, Memory in bytes.
	CPU, Memory float64
}

// Inventory returns the nodes that there are now. A nil Inventory is one that
// nobody has.
type Inventory func() ([]Machine, error)

// FromLister returns the nodes that a lister has, which is that of an informer.
func FromLister(nodes corelisters.NodeLister) Inventory {
	return func() ([]Machine, error) {
		list, err := nodes.List(labels.Everything())
		if err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		return MachinesOf(list), nil
	}
}

// MachinesOf returns what nodes are without their load.
func MachinesOf(nodes []*v1.Node) []Machine {
	machines := make([]Machine, 0, len(nodes))
	for _, node := range nodes {
		machine := Machine{
			Name:   node.Name,
			CPU:    node.Status.Capacity.Cpu().AsApproximateFloat64(),
			Memory: node.Status.Capacity.Memory().AsApproximateFloat64(),
		}
		for _, address := range node.Status.Addresses {
			machine.Addresses = append(machine.Addresses, address.Address)
		}
		if host := node.Labels[v1.LabelHostname]; host != "" {
			machine.Addresses = append(machine.Addresses, host)
		}
		machines = append(machines, machine)
	}
	return machines
}

// Names finds nodes by what others call them.
type Names struct {
	// nodes by name and by address; the value is empty where two nodes claim one.
	nodes map[string]string
}

// NamesOf returns the names of the machines.
func NamesOf(machines []Machine) Names {
	names := Names{nodes: make(map[string]string, 3*len(machines))}
	for _, machine := range machines {
		for _, address := range machine.Addresses {
			if other, taken := names.nodes[address]; taken && other != machine.Name {
				names.nodes[address] = ""
				continue
			}
			names.nodes[address] = machine.Name
		}
	}
	// A node's own name is always its own.
	for _, machine := range machines {
		names.nodes[machine.Name] = machine.Name
	}
	return names
}

// Resolve returns the node that a host is: by name, address, or the first part
// of a full domain name. Where no nodes are known, every host is one.
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

// Host returns the host of host:port, or all of it where it has no port.
func Host(instance string) string {
	if host, _, err := net.SplitHostPort(instance); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(instance, "["), "]")
}
