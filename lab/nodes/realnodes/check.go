package realnodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// packages are the programs that must be installed, by the Debian package that has them.
var packages = []struct {
	name     string
	programs []string
}{
	{"containerd", []string{"containerd", "containerd-shim-runc-v2", "ctr"}},
	{"runc", []string{"runc"}},
	{"iproute2", []string{"ip"}},
	{"containernetworking-plugins", []string{"/usr/lib/cni/bridge", "/usr/lib/cni/host-local", "/usr/lib/cni/loopback"}},
	{"prometheus", []string{"prometheus"}},
}

// CheckMachine returns what this machine lacks to run real nodes, nil if it lacks nothing.
func CheckMachine() error { return missing("/", os.Geteuid(), exec.LookPath) }

// missing returns what a machine lacks: root is the folder with its files, user the ID of the user, and find finds programs.
func missing(root string, user int, find func(program string) (string, error)) error {
	var all []error
	if user != 0 {
		all = append(all, errors.New("real nodes need root: run the command with sudo"))
	}
	// Bits of capability sets, as in include/uapi/linux/capability.h.
	const administrators = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	if user == 0 && effectiveCapabilities(root)&administrators != administrators {
		all = append(all, errors.New("real nodes need the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN: a container must be privileged"))
	}
	if _, err := readCgroups(root); err != nil {
		all = append(all, err)
	}
	systems, err := os.ReadFile(filepath.Join(root, "proc/filesystems"))
	if err != nil || !strings.Contains(string(systems), "\toverlay\n") {
		all = append(all, errors.New("the kernel has no overlay file system, which containers need: load the module overlay"))
	}
	for _, p := range packages {
		var absent []string
		for _, program := range p.programs {
			if _, err := find(program); err != nil {
				absent = append(absent, program)
			}
		}
		if len(absent) > 0 {
			all = append(all, fmt.Errorf("not installed: %s: apt-get install %s", strings.Join(absent, ", "), p.name))
		}
	}
	return errors.Join(all...)
}

// effectiveCapabilities returns the effective capability set of this process, whose files are in the folder root.
func effectiveCapabilities(root string) (set uint64) {
	status, _ := os.ReadFile(filepath.Join(root, "proc/self/status"))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, _ = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return set
}

// Check returns an error if the programs are missing, or if this machine is too small for the nodes.
func (o *Options) Check() error {
	for _, name := range []string{"kubelet", "metrics-server", "work"} {
		if _, err := os.Stat(filepath.Join(o.Bin, name)); err != nil {
			return fmt.Errorf("%w: build the programs with make nodes-programs", err)
		}
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return err
	}
	return o.fits(runtime.NumCPU(), int(info.Totalram*uint64(info.Unit)>>20))
}

// fits returns an error if a machine is too small for the nodes. memory is in MiB.
func (o *Options) fits(cpus, memory int) error {
	// The control plane and the daemons of nodes need about a third of a core.
	const reserved = 400
	if o.Nodes < 1 || o.Nodes > 99 || o.CPU < 50 || o.Memory < 128 {
		return fmt.Errorf(
			"%d nodes of %d millicores and %d MiB: must be 1 to 99 nodes of at least 50 millicores and 128 MiB",
			o.Nodes,
			o.CPU,
			o.Memory,
		)
	}
	if available := 1000*cpus - reserved; o.Nodes*o.CPU > available {
		return fmt.Errorf("%d nodes of %d millicores: this machine has %d cores, which leave %d millicores for nodes",
			o.Nodes, o.CPU, cpus, available)
	}
	if o.Memory > memory {
		return fmt.Errorf("nodes of %d MiB: this machine has %d MiB", o.Memory, memory)
	}
	return nil
}
