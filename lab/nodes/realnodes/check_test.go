package realnodes

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
)

// Files of machines.
const (
	version1 = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n" +
		"cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
	withoutCPU = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
	version2   = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
	readOnly   = "cgroup2 /sys/fs/cgroup cgroup2 ro,nosuid 0 0\n"
	overlay    = "nodev\tproc\n\text4\nnodev\toverlay\n"
)

// TestMissing expects one sentence for each requirement that a machine lacks.
func TestMissing(t *testing.T) {
	const (
		root     = "real nodes need root: run the command with sudo"
		noGroups = "control groups: the hierarchies in /sys/fs/cgroup lack the controllers cpu and memory, which limit nodes"
		noRights = "real nodes need the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN: a container must be privileged"
		noSystem = "the kernel has no overlay file system, which containers need: load the module overlay"
	)
	for name, tc := range map[string]struct {
		user                       int
		mounts, systems, available string
		capabilities               string   // default: all, as root has
		ofGroup                    []string // of a container: the type, the enabled controllers and the processes of the group at the root
		absent                     []string
		want                       []string
	}{
		"nothing, version 1": {mounts: version1, systems: overlay},
		"nothing, version 2": {mounts: version2, systems: overlay, available: "cpuset cpu io memory pids\n"},
		"root":               {user: 1000, mounts: version1, systems: overlay, want: []string{root}},
		"controller of CPU":  {mounts: withoutCPU, systems: overlay, want: []string{noGroups}},
		"any control group":  {mounts: "proc /proc proc rw 0 0\n", systems: overlay, want: []string{noGroups}},
		"CPU, version 2":     {mounts: version2, systems: overlay, available: "memory\n", want: []string{"/cgroup.controllers lacks cpu and memory, which limit nodes"}},
		"a container's group, enabled": {
			mounts: version2, systems: overlay, available: "cpu memory\n", ofGroup: []string{"domain\n", "cpu memory\n", "7\n"},
		},
		"a container's group, empty": {
			mounts: version2, systems: overlay, available: "cpu memory\n", ofGroup: []string{"domain\n", "", ""},
		},
		"a container's group": {
			mounts: version2, systems: overlay, available: "cpu memory\n", ofGroup: []string{"domain\n", "cpu\n", "7\n"},
			want: []string{"/sys/fs/cgroup is the group of a container and has processes: move them to a child"},
		},
		"read-only groups": {
			mounts: readOnly, systems: overlay,
			want: []string{"control groups: /sys/fs/cgroup is read-only, as in a container without privileges"},
		},
		// CAP_NET_ADMIN is bit 12, CAP_SYS_ADMIN bit 21: bits 0 to 20, and bit 21 alone.
		"administrator of the system":  {mounts: version1, systems: overlay, capabilities: "00000000001fffff", want: []string{noRights}},
		"administrator of the network": {mounts: version1, systems: overlay, capabilities: "0000000000200000", want: []string{noRights}},
		"overlay":                      {mounts: version1, systems: "nodev\tproc\n\text4\n", want: []string{noSystem}},
		"a package":                    {mounts: version1, systems: overlay, absent: []string{"runc"}, want: []string{"not installed: runc: apt-get install runc"}},
		"programs of packages": {
			mounts: version1, systems: overlay, absent: []string{"ctr", "containerd", "/usr/lib/cni/bridge"},
			want: []string{
				"not installed: containerd, ctr: apt-get install containerd",
				"not installed: /usr/lib/cni/bridge: apt-get install containernetworking-plugins",
			},
		},
		"all": {user: 1, mounts: withoutCPU, absent: []string{"ip"}, want: []string{root, noGroups, noSystem, "not installed: ip: apt-get install iproute2"}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := t.TempDir()
			machineFiles := map[string]string{
				"proc/self/mounts": tc.mounts, "proc/filesystems": tc.systems, "sys/fs/cgroup/cgroup.controllers": tc.available,
				"proc/self/status": "Name:\ttest\nCapEff:\t" + cmp.Or(tc.capabilities, "000001ffffffffff") + "\nSeccomp:\t0\n",
			}
			for i, content := range tc.ofGroup {
				machineFiles["sys/fs/cgroup/"+[]string{"cgroup.type", "cgroup.subtree_control", "cgroup.procs"}[i]] = content
			}
			writeFiles(t, machine, machineFiles)
			err := missing(machine, tc.user, func(program string) (string, error) {
				if slices.Contains(tc.absent, program) {
					return "", os.ErrNotExist
				}
				return program, nil
			})
			text := ""
			if err != nil {
				text = err.Error()
			}
			lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
			if !slices.EqualFunc(lines, tc.want, strings.HasSuffix) {
				t.Errorf("missing: %q, want %q", lines, tc.want)
			}
		})
	}
}

// TestFits expects an error for nodes that a machine of 2 cores and 4 GiB cannot run. 400 millicores are reserved: 4 x 400 = 2000 - 400.
func TestFits(t *testing.T) {
	for _, tc := range []struct {
		nodes, cpu, memory int
		want               string
	}{
		{4, 400, 1024, ""},
		{1, 1600, 4096, ""},
		{4, 401, 1024, "4 nodes of 401 millicores: this machine has 2 cores, which leave 1600 millicores for nodes"},
		{100, 50, 128, "must be 1 to 99 nodes of at least 50 millicores and 128 MiB"},
		{0, 50, 128, "0 nodes of 50 millicores and 128 MiB: must be 1 to 99 nodes"},
		{1, 49, 128, "must be 1 to 99 nodes of at least 50 millicores"},
		{1, 50, 127, "must be 1 to 99 nodes of at least 50 millicores and 128 MiB"},
		{1, 50, 4097, "nodes of 4097 MiB: this machine has 4096 MiB"},
	} {
		options := Options{Nodes: tc.nodes, CPU: tc.cpu, Memory: tc.memory}
		err := options.fits(2, 4096)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", options, err, tc.want)
		}
	}
}

// TestMissingPrograms expects an error that names the program and how to build it.
func TestMissingPrograms(t *testing.T) {
	options := Options{Nodes: 1, CPU: 50, Memory: 128, Bin: t.TempDir()}
	if err := options.Check(); err == nil ||
		!strings.Contains(err.Error(), "/kubelet: no such file or directory: build the programs with make nodes-programs") {
		t.Errorf("no error about the missing kubelet: %v", err)
	}
}
