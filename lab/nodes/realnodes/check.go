package realnodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// programs are the programs that must be installed, by the Debian package that has them.
var programs = map[string][]string{
	"containerd":                  {"containerd", "containerd-shim-runc-v2", "ctr"},
	"runc":                        {"runc"},
	"iproute2":                    {"ip"},
	"containernetworking-plugins": {"/usr/lib/cni/bridge", "/usr/lib/cni/host-local", "/usr/lib/cni/loopback"},
	"prometheus":                  {"prometheus"},
}

// CheckMachine returns what this machine lacks to run real nodes, nil if it lacks nothing.
func CheckMachine() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("real nodes need root: run the command with sudo"))
	}
	if _, err := findCgroups(); err != nil {
		missing = append(missing, err)
	}
	if systems, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(systems), "\toverlay\n") {
		missing = append(missing, errors.New("the kernel has no overlay file system, which containers need: load the module overlay"))
	}
	for name, files := range programs {
		for _, file := range files {
			if _, err := exec.LookPath(file); err != nil {
				missing = append(missing, fmt.Errorf("%s is not installed: apt-get install %s", file, name))
			}
		}
	}
	return errors.Join(missing...)
}

// check returns an error if the machine is too small for the nodes.
func (o *Options) check() error {
	// The control plane and the daemons of nodes need about a third of a core.
	const reserved = 400
	if o.Nodes < 1 || o.Nodes > 99 || o.CPU < 50 || o.Memory < 128 {
		return fmt.Errorf("%d nodes of %d millicores and %d MiB: must be 1 to 99 nodes of at least 50 millicores and 128 MiB", o.Nodes, o.CPU, o.Memory)
	}
	if available := 1000*runtime.NumCPU() - reserved; o.Nodes*o.CPU > available {
		return fmt.Errorf("%d nodes of %d millicores: this machine has %d cores, which leave %d millicores for nodes",
			o.Nodes, o.CPU, runtime.NumCPU(), available)
	}
	return nil
}
