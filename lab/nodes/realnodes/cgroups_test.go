package realnodes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// writeFiles writes files with their folders.
func writeFiles(t *testing.T, dir string, contents map[string]string) {
	t.Helper()
	for path, content := range contents {
		path = filepath.Join(dir, path)
		must.Succeed(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
	}
}

// groupsIn returns the control groups of a version, whose hierarchies are folders.
func groupsIn(dir string, version int) *cgroups {
	if version == 2 {
		return &cgroups{hierarchies: []hierarchy{{mount: dir}}, isVersion2: true, enable: "+cpu +memory"}
	}
	return &cgroups{hierarchies: []hierarchy{
		{filepath.Join(dir, "cpu"), "cpu,cpuacct"}, {filepath.Join(dir, "memory"), "memory"}, {filepath.Join(dir, "cpuset"), "cpuset"},
	}}
}

// TestUsage reads files of the kernel of both versions.
func TestUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		version int
		files   map[string]string
		want    Usage
	}{
		// Times of version 1 are in nanoseconds. Its counters of memory without total_ are without children: 1000000 - 300000 = 700000.
		"version 1": {1, map[string]string{
			"cpu/pods/cpu.stat":                 "nr_periods 450\nnr_throttled 65\nthrottled_time 1653867086\nnr_bursts 0\nburst_time 0\n",
			"cpu/pods/cpuacct.usage":            "51286114804\n",
			"memory/pods/memory.usage_in_bytes": "1000000\n",
			"memory/pods/memory.stat": "cache 10371072\nrss 16596992\ninactive_file 100000\nactive_file 1286144\n" +
				"hierarchical_memory_limit 9223372036854771712\ntotal_cache 70000\ntotal_inactive_file 300000\ntotal_active_file 41296\n",
		}, Usage{
			CPUSeconds: 51.286114804, ThrottledSeconds: 1.653867086, Periods: 450, ThrottledPeriods: 65, MemoryBytes: 700_000,
		}},
		// Times of version 2 are in microseconds. Its counters include children.
		"version 2": {2, map[string]string{
			"pods/cpu.stat": "usage_usec 51286114\nuser_usec 40000000\nsystem_usec 11286114\ncore_sched.force_idle_usec 0\n" +
				"nr_periods 450\nnr_throttled 65\nthrottled_usec 1653867\nnr_bursts 0\nburst_usec 0\n",
			"pods/memory.current": "1000000\n",
			"pods/memory.stat":    "anon 16596992\nfile 10371072\nkernel 524288\ninactive_anon 0\ninactive_file 300000\nactive_file 41296\n",
		}, Usage{
			CPUSeconds: 51.286114, ThrottledSeconds: 1.653867, Periods: 450, ThrottledPeriods: 65, MemoryBytes: 700_000,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, tc.files)
			if got, err := groupsIn(dir, tc.version).usage("pods"); err != nil || got != tc.want {
				t.Errorf("usage %+v and %v, want %+v", got, err, tc.want)
			}
		})
	}
}

// TestLimits creates a group and expects what is written to the files of the kernel: 300 millicores are 30 of 100 ms.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		version      int
		before, want map[string]string
	}{
		"version 1": {
			1,
			map[string]string{"cpu/x": "", "memory/x": "", "cpuset/cpuset.cpus": "0-1\n", "cpuset/cpuset.mems": "0\n"},
			map[string]string{
				"cpu/top/node/cpu.cfs_period_us": "100000", "cpu/top/node/cpu.cfs_quota_us": "30000", "cpu/top/node/cpu.shares": "10000",
				"cpuset/top/cpuset.cpus": "0-1\n", "cpuset/top/node/cpuset.cpus": "0-1\n", "cpuset/top/node/cpuset.mems": "0\n",
			},
		},
		// All groups but the last one enable controllers for their children. The weight is 1 + 9998 * 9999/262142 = 382.
		"version 2": {
			2, nil, map[string]string{
				"cgroup.subtree_control": "+cpu +memory", "top/cgroup.subtree_control": "+cpu +memory",
				"top/node/cgroup.subtree_control": "", "top/node/cpu.max": "30000 100000", "top/node/cpu.weight": "382",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, tc.before)
			groups := groupsIn(dir, tc.version)
			must.Succeed(t, errors.Join(groups.create("top/node"), groups.setQuota("top/node", 300), groups.setShares("top/node", 10000)))
			for path, want := range tc.want {
				if raw, _ := os.ReadFile(filepath.Join(dir, path)); string(raw) != want {
					t.Errorf("%s is %q, want %q", path, raw, want)
				}
			}
		})
	}
}

// TestControllers expects what a machine enables for children: what nodes use and what it has.
func TestControllers(t *testing.T) {
	for available, want := range map[string]string{
		"cpuset cpu io memory hugetlb pids rdma misc\n": "+cpuset +cpu +io +memory +hugetlb +pids",
		"cpu memory pids\n":                             "+cpu +memory +pids",
	} {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{"cgroup.controllers": available})
		if got, err := enableControllers(dir); err != nil || got != want {
			t.Errorf("%q: %q and %v, want %q", available, got, err, want)
		}
	}
}
