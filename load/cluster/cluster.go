// Package cluster provides the nodes of a cluster to load sources: their addresses and capacities.
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
	// Name is the name of the node.
	Name string
	// Addresses are the IP addresses and host names.
	Addresses []string
	// CPU is the capacity in cores.
	CPU float64
	// Memory is the capacity in bytes.
	Memory float64
}

// Inventory returns the current nodes. A nil Inventory means that the nodes are unknown.
type Inventory func() ([]Machine, error)

// FromLister returns the inventory of a lister.
func FromLister(nodes corelisters.NodeLister) Inventory {
	return func() ([]Machine, error) {
		list, err := nodes.List(labels.Everything())
		if err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		return MachinesOf(list), nil
	}
}

// MachinesOf returns the machines of nodes.
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

// Names maps hosts to nodes.
type Names struct {
	// nodes are node names by name and address. The value is empty if several nodes have the address.
	nodes map[string]string
}

// NamesOf returns the names of the machines.
func NamesOf(machines []Machine) Names {
	names := Names{nodes: make(map[string]string, 3*len(machines))}
	for _, machine := range machines {
		for _, address := range machine.Addresses {
			if other, found := names.nodes[address]; found && other != machine.Name {
				names.nodes[address] = ""
				continue
			}
			names.nodes[address] = machine.Name
		}
	}
	// The name of a node takes precedence over the addresses of other nodes.
	for _, machine := range machines {
		names.nodes[machine.Name] = machine.Name
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
