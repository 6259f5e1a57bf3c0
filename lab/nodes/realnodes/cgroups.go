package realnodes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	cgroupMount = "/sys/fs/cgroup"
	// cgroupTop is the parent of the control groups of all clusters, below the root of each hierarchy.
	cgroupTop = "plimsoll-nodes"
	// pods and daemons are the control groups of a node: kubelet and container runtime are beside the pods, which are limited.
	pods    = "kubepods"
	daemons = "system"
	// cpuPeriod is the period in microseconds in which a node has its quota of CPU time. It is the period of the kubelet.
	cpuPeriod = 100000
)

// hierarchy is a mounted hierarchy of control groups.
type hierarchy struct {
	mount string
	// options are the mount options of a hierarchy of version 1, such as cpu,cpuacct or none,name=systemd.
	options string
}

func (h *hierarchy) has(controller string) bool {
	return slices.Contains(strings.Split(h.options, ","), controller)
}

// cgroups are the hierarchies of this machine: one for each set of controllers (version 1), or a single one (version 2).
type cgroups struct {
	hierarchies []hierarchy
	isVersion2  bool
	// enable is what enables the controllers of version 2 that nodes use and the machine has, such as "+cpu +memory".
	enable string
}

// controllers are the controllers of version 1 that nodes use.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "name=systemd"}

// controllers2 are the controllers of version 2 that the kubelet and runc use.
var controllers2 = []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}

// findCgroups reads the hierarchies that this process sees.
func findCgroups() (*cgroups, error) { return readCgroups("/") }

// readCgroups reads the mounted hierarchies of a machine, whose files are in the folder root. It returns an error if they cannot limit CPU
// time and memory.
func readCgroups(root string) (*cgroups, error) {
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mounts"))
	if err != nil {
		return nil, err
	}
	found := &cgroups{}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(fields[2], "cgroup") && slices.Contains(strings.Split(fields[3], ","), "ro") {
			return nil, errors.New("control groups: " + fields[1] + " is read-only, as in a container without privileges")
		}
		switch {
		case fields[2] == "cgroup":
			var options []string
			for option := range strings.SplitSeq(fields[3], ",") {
				if slices.Contains(controllers, option) {
					options = append(options, option)
				}
			}
			if len(options) > 0 {
				found.hierarchies = append(found.hierarchies, hierarchy{fields[1], strings.Join(options, ",")})
			}
		case fields[2] == "cgroup2" && fields[1] == cgroupMount:
			found = &cgroups{hierarchies: []hierarchy{{mount: cgroupMount}}, isVersion2: true}
			found.enable, err = enableControllers(filepath.Join(root, cgroupMount))
			return found, err
		}
	}
	if found.hierarchyOf("cpu") == nil || found.hierarchyOf("memory") == nil {
		return nil, errors.New(
			"control groups: the hierarchies in " + cgroupMount + " lack the controllers cpu and memory, which limit nodes",
		)
	}
	return found, nil
}

// enableControllers returns what enables the controllers of a hierarchy of version 2 for children. It returns an error if the hierarchy has
// none of CPU time or of memory, or if it cannot enable them: only the root of the machine may have processes of its own beside children
// with controllers, not the group of a container, which a container sees as the root.
func enableControllers(mount string) (string, error) {
	read := func(file string) []string {
		raw, _ := os.ReadFile(filepath.Join(mount, file))
		return strings.Fields(string(raw))
	}
	var enable []string
	available, enabled := read("cgroup.controllers"), read("cgroup.subtree_control")
	isMissing := false
	for _, name := range controllers2 {
		if slices.Contains(available, name) {
			enable = append(enable, "+"+name)
			isMissing = isMissing || !slices.Contains(enabled, name)
		}
	}
	if !slices.Contains(available, "cpu") || !slices.Contains(available, "memory") {
		return "", errors.New("control groups: " + mount + "/cgroup.controllers lacks cpu and memory, which limit nodes")
	}
	// The root of the machine has no file cgroup.type.
	if isMissing && len(read("cgroup.type")) > 0 && len(read("cgroup.procs")) > 0 {
		return "", errors.New("control groups: " + mount + " is the group of a container and has processes: move them to a child")
	}
	return strings.Join(enable, " "), nil
}

// hierarchyOf returns the hierarchy of a controller of version 1, or the one of version 2; nil if there is none.
func (c *cgroups) hierarchyOf(controller string) *hierarchy {
	for i := range c.hierarchies {
		if c.isVersion2 || c.hierarchies[i].has(controller) {
			return &c.hierarchies[i]
		}
	}
	return nil
}

// create creates a control group with its parents in all hierarchies.
func (c *cgroups) create(path string) error {
	for i := range c.hierarchies {
		h, below := &c.hierarchies[i], ""
		for name := range strings.SplitSeq(path, "/") {
			parent := filepath.Join(h.mount, below)
			below = filepath.Join(below, name)
			dir := filepath.Join(h.mount, below)
			if c.isVersion2 {
				control := filepath.Join(parent, "cgroup.subtree_control")
				if err := os.WriteFile(control, []byte(c.enable), 0o644); err != nil {
					return err
				}
			}
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if h.has("cpuset") {
				for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
					raw, err := os.ReadFile(filepath.Join(parent, file))
					if err == nil {
						err = os.WriteFile(filepath.Join(dir, file), raw, 0o644)
					}
					if err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// enter moves this process into a control group.
func (c *cgroups) enter(path string) error {
	for _, h := range c.hierarchies {
		if err := os.WriteFile(filepath.Join(h.mount, path, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a control group with its children, which must have no processes.
func (c *cgroups) remove(path string) error {
	var failed error
	for _, h := range c.hierarchies {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(h.mount, path), func(dir string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, dir)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = fmt.Errorf("%s: %w", dir, err)
			}
		}
	}
	return failed
}

// setShares sets the weight of a control group relative to its siblings. The default is 1024.
func (c *cgroups) setShares(path string, shares int) error {
	if c.isVersion2 {
		// The conversion of runc for weights of version 2.
		return c.writeCPU(path, "cpu.weight", strconv.Itoa(1+(shares-2)*9999/262142))
	}
	return c.writeCPU(path, "cpu.shares", strconv.Itoa(shares))
}

// setQuota limits the CPU time of a control group.
func (c *cgroups) setQuota(path string, millicores int) error {
	quota := millicores * cpuPeriod / 1000
	if c.isVersion2 {
		return c.writeCPU(path, "cpu.max", fmt.Sprintf("%d %d", quota, cpuPeriod))
	}
	if err := c.writeCPU(path, "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)); err != nil {
		return err
	}
	return c.writeCPU(path, "cpu.cfs_quota_us", strconv.Itoa(quota))
}

// writeCPU writes a file of the controller of CPU time.
func (c *cgroups) writeCPU(path, file, value string) error {
	return os.WriteFile(filepath.Join(c.hierarchyOf("cpu").mount, path, file), []byte(value), 0o644)
}

// Usage is what the kernel has counted for the pods of a node since its start.
type Usage struct {
	// CPUSeconds is the CPU time, ThrottledSeconds the time that threads waited for their quota, summed over processors.
	CPUSeconds, ThrottledSeconds float64
	// Periods is the number of periods of 100 ms in which the pods ran, and ThrottledPeriods the number of them in which the quota was
	// used up.
	Periods, ThrottledPeriods int64
	// MemoryBytes is the memory in use, without the part of the page cache that is inactive.
	MemoryBytes int64
}

// usage returns the counters of a control group.
func (c *cgroups) usage(path string) (u Usage, err error) {
	counters, err := c.counters("cpu", path, "cpu.stat")
	if err != nil {
		return u, err
	}
	memory, err := c.counters("memory", path, "memory.stat")
	if err != nil {
		return u, err
	}
	u.Periods, u.ThrottledPeriods = counters["nr_periods"], counters["nr_throttled"]
	current := "memory.usage_in_bytes"
	if c.isVersion2 {
		current = "memory.current"
		u.CPUSeconds, u.ThrottledSeconds = float64(counters["usage_usec"])/1e6, float64(counters["throttled_usec"])/1e6
	} else {
		u.ThrottledSeconds = float64(counters["throttled_time"]) / 1e9
		used, err := c.number("cpuacct", path, "cpuacct.usage")
		if err != nil {
			return u, err
		}
		u.CPUSeconds = float64(used) / 1e9
	}
	u.MemoryBytes, err = c.number("memory", path, current)
	u.MemoryBytes -= max(memory["total_inactive_file"], memory["inactive_file"])
	return u, err
}

func (c *cgroups) number(controller, path, file string) (int64, error) {
	raw, err := os.ReadFile(filepath.Join(c.hierarchyOf(controller).mount, path, file))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
}

func (c *cgroups) counters(controller, path, file string) (map[string]int64, error) {
	raw, err := os.ReadFile(filepath.Join(c.hierarchyOf(controller).mount, path, file))
	if err != nil {
		return nil, err
	}
	found := map[string]int64{}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[name], _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return found, nil
}
