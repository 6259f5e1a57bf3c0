//go:build nodes

// Package lifecycle tests the program nodes from outside: that it is ready and stops in time, and that nothing is left of it, however it
// ends.
package lifecycle

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const (
	// bin has the programs that make nodes-programs builds.
	bin = "../../../bin/nodes"
	// state has a folder, and groups a control group, for each running program, with its process ID as name.
	state  = "/var/tmp/plimsoll-nodes"
	groups = "plimsoll-nodes"
	// readyLimit and stopLimit are the promises for 4 nodes.
	readyLimit = 20 * time.Second
	stopLimit  = 5 * time.Second
	// terminateLimit bounds the end of a program that is not ready yet, or that runs more than a cluster.
	terminateLimit = 10 * time.Second
)

// machine is what a program may not change.
type machine struct {
	mounts, links, routes string
	// cgroups are the control groups but those of clusters.
	cgroups []string
}

func readMachine(t *testing.T) machine {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	must.Succeed(t, err)
	output := func(args ...string) string {
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	// Not the remaining lifetimes of addresses.
	links := regexp.MustCompile(`valid_lft \S+ preferred_lft \S+`).ReplaceAllString(output("-o", "addr"), "")
	return machine{string(mounts), links, output("route"), cgroups(func(path string) bool { return !strings.Contains(path, "/"+groups) })}
}

// cgroups returns the control groups whose path is included.
func cgroups(includes func(path string) bool) (found []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && includes(path) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// processes returns the processes of the program with a process ID: itself and all that are in its control groups or have its folder in
// their environment.
func processes(program int) map[int]string {
	found := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		inGroups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		environment, _ := os.ReadFile(filepath.Join(dir, "environ"))
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil || strings.Contains(string(status), "\nState:\tZ") {
			continue // has ended
		}
		if pid == program || strings.Contains(string(inGroups)+"\n", fmt.Sprintf("/%s/%d/", groups, program)) ||
			strings.Contains(string(environment), fmt.Sprintf("PLIMSOLL_NODES_DIR=%s/%d\x00", state, program)) {
			found[pid] = string(environment)
		}
	}
	return found
}

// namespaces returns the namespaces of processes.
func namespaces(pids []int) map[string]bool {
	found := map[string]bool{}
	for _, pid := range pids {
		for _, kind := range []string{"net", "mnt", "pid", "cgroup"} {
			if name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)); err == nil {
				found[name] = true
			}
		}
	}
	return found
}

// nodes is a running program.
type nodes struct {
	command *exec.Cmd
	output  string // path of the file with its output
	started time.Time
	ended   chan struct{}
	// own are its namespaces that the machine does not have.
	own map[string]bool
}

// start starts the program nodes.
func start(t *testing.T, args ...string) *nodes {
	t.Helper()
	return startProgram(t, "nodes", args...)
}

// startProgram starts a program that runs a cluster, in a process group of its own, as a shell does.
func startProgram(t *testing.T, name string, args ...string) *nodes {
	t.Helper()
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	must.Succeed(t, err)
	defer output.Close()
	n := &nodes{output: output.Name(), started: time.Now(), ended: make(chan struct{})}
	n.command = exec.Command(filepath.Join(bin, name), append([]string{"-bin", bin}, args...)...)
	n.command.Stdout, n.command.Stderr = output, output
	n.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Succeed(t, n.command.Start())
	go func() {
		_ = n.command.Wait()
		close(n.ended)
	}()
	t.Cleanup(func() {
		_ = n.command.Process.Kill()
		<-n.ended
	})
	return n
}

// String returns the output so far.
func (n *nodes) String() string {
	raw, _ := os.ReadFile(n.output)
	return string(raw)
}

func (n *nodes) pid() int { return n.command.Process.Pid }

// awaitOutput waits until the program has printed a text.
func (n *nodes) awaitOutput(t *testing.T, text string) {
	t.Helper()
	eventually.True(t, "waiting for "+text, n, func(context.Context) (bool, error) {
		select {
		case <-n.ended:
			return false, fmt.Errorf("the program has ended with %s", n.command.ProcessState)
		default:
		}
		return strings.Contains(n.String(), text), nil
	})
}

// awaitReady waits until the nodes are ready, and looks at the namespaces.
func (n *nodes) awaitReady(t *testing.T) {
	t.Helper()
	n.awaitOutput(t, "ready after ")
	t.Logf("ready after %.1f s", time.Since(n.started).Seconds())
	var pids []int
	for pid := range processes(n.pid()) {
		pids = append(pids, pid)
	}
	n.own = namespaces(pids)
	for name := range namespaces([]int{os.Getpid()}) {
		delete(n.own, name)
	}
	// The program has a network of its own, and each node has mounts, processes and control groups of its own.
	if len(n.own) < 5 {
		t.Errorf("%d namespaces: %v", len(n.own), n.own)
	}
}

// leftovers returns what is left of a program.
func (n *nodes) leftovers() (left []string) {
	for pid, environment := range processes(n.pid()) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		role := regexp.MustCompile(`PLIMSOLL_NODES_ROLE=\w+`).FindString(environment)
		left = append(left, fmt.Sprintf("process %d %s %s", pid, role, strings.ReplaceAll(string(command), "\x00", " ")))
	}
	left = append(left, cgroups(func(path string) bool {
		return strings.Contains(path+"/", fmt.Sprintf("/%s/%d/", groups, n.pid()))
	})...)
	dir := filepath.Join(state, strconv.Itoa(n.pid()))
	if _, err := os.Stat(dir); err == nil {
		left = append(left, dir)
	}
	// Without other clusters, the parents are gone, too.
	if entries, err := os.ReadDir(state); err == nil && len(entries) == 0 {
		left = append(left, state)
	}
	if n.hasNamespaces() {
		left = append(left, fmt.Sprintf("some of the namespaces %v", n.own))
	}
	return left
}

// hasNamespaces reports whether a process of the machine is in a namespace of the program.
func (n *nodes) hasNamespaces() bool {
	var all []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			all = append(all, pid)
		}
	}
	for name := range namespaces(all) {
		if n.own[name] {
			return true
		}
	}
	return false
}

// expectNothing waits until nothing is left of a program, and expects the machine as it was before.
func (n *nodes) expectNothing(t *testing.T, before machine, limit time.Duration) {
	t.Helper()
	end := time.Now()
	var left lines
	eventually.TrueWithin(
		t,
		20*time.Second,
		20*time.Millisecond,
		"waiting until nothing is left",
		&left,
		func(context.Context) (bool, error) {
			left = n.leftovers()
			return len(left) == 0, nil
		},
	)
	if took := time.Since(end); took > limit {
		t.Errorf("cleaned up after %s, want at most %s", took, limit)
	} else {
		t.Logf("cleaned up after %.1f s", took.Seconds())
	}
	after := readMachine(t)
	if after.mounts != before.mounts {
		t.Errorf("mounts were\n%s and are\n%s", before.mounts, after.mounts)
	}
	if after.links != before.links || after.routes != before.routes {
		t.Errorf("addresses and routes were\n%s%s and are\n%s%s", before.links, before.routes, after.links, after.routes)
	}
	added := slices.DeleteFunc(after.cgroups, func(path string) bool { return slices.Contains(before.cgroups, path) })
	if len(added) > 0 {
		t.Errorf("further control groups: %q", added)
	}
}

// lines is printed with an element in a line.
type lines []string

// String implements fmt.Stringer.
func (l *lines) String() string { return strings.Join(*l, "\n") }

// role returns the process of a role of a program.
func (n *nodes) role(t *testing.T, role string) *os.Process {
	t.Helper()
	for pid, environment := range processes(n.pid()) {
		if strings.Contains(environment, "PLIMSOLL_NODES_ROLE="+role+"\x00") {
			process, err := os.FindProcess(pid)
			must.Succeed(t, err)
			return process
		}
	}
	t.Fatalf("the program has no process of the role %s", role)
	return nil
}

// TestInterrupt starts four nodes, presses Ctrl-C, and expects both in time, and nothing left.
func TestInterrupt(t *testing.T) {
	before := readMachine(t)
	n := start(t, "-nodes", "4", "-cpu", "150")
	n.awaitReady(t)
	if took := time.Since(n.started); took > readyLimit {
		t.Errorf("4 nodes were ready after %s, want at most %s", took, readyLimit)
	}
	// Commands run inside.
	out, err := exec.Command(filepath.Join(bin, "nodes"), "enter", "ip", "-o", "link").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "plim0") {
		t.Errorf("nodes enter ip link: %v\n%s", err, out)
	}
	// Ctrl-C reaches all processes of the group.
	began := time.Now()
	must.Succeed(t, syscall.Kill(-n.pid(), syscall.SIGINT))
	<-n.ended
	took := time.Since(began)
	t.Logf("stopped after %.1f s", took.Seconds())
	if took > stopLimit {
		t.Errorf("stopped after %s, want at most %s", took, stopLimit)
	}
	if code := n.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d\n%s", code, n)
	}
	n.expectNothing(t, before, time.Second)
}

// terminate sends SIGTERM to the program alone, as a supervisor does, and expects its end in time, and nothing left.
func (n *nodes) terminate(t *testing.T, before machine) {
	t.Helper()
	began := time.Now()
	must.Succeed(t, n.command.Process.Signal(syscall.SIGTERM))
	select {
	case <-n.ended:
		t.Logf("stopped after %.1f s", time.Since(began).Seconds())
	case <-time.After(terminateLimit):
		t.Fatalf("runs %s after SIGTERM\n%s", terminateLimit, n)
	}
	n.expectNothing(t, before, time.Second)
}

// TestTerminate ends the program while the control plane starts, and while the nodes do.
func TestTerminate(t *testing.T) {
	before := readMachine(t)
	n := start(t, "-nodes", "2", "-cpu", "100")
	n.awaitOutput(t, "starting 2 nodes")
	n.terminate(t, before)

	n = start(t, "-nodes", "2", "-cpu", "100")
	eventually.True(t, "waiting for the last node to start", n, func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(state, strconv.Itoa(n.pid()), "node-2", "kubelet.log"))
		return err == nil, nil
	})
	n.terminate(t, before)
}

// TestTerminateExperiment ends the experiment in its first run.
func TestTerminateExperiment(t *testing.T) {
	before := readMachine(t)
	n := startProgram(t, "experiment", "-project", "../../..", "-nodes", "2", "-cpu", "100", "-pods", "4",
		"-usage", writeUsage(t), t.TempDir())
	n.awaitOutput(t, "a run that is not measured")
	n.terminate(t, before)
}

// writeUsage writes a folder of recorded usage: a day of constant usage of some machines of each set.
func writeUsage(t *testing.T) string {
	t.Helper()
	const steps, step = 288, 300
	dir := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(dir, path)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	}
	for i := range 4 { // the experiment uses half of them
		write(fmt.Sprintf("20110303/host_site_%d", i), strings.Repeat("10\n", steps))
		write(fmt.Sprintf("GCD_VMs/vm_%d_1", i), strings.Repeat("10 10\n", steps))
		for month, midnight := range map[string]int{"2013-7": 1372636800, "2013-8": 1375315200} {
			rows := "Timestamp\n"
			for second := range steps {
				rows += fmt.Sprintf("%d;1;100;10;10;100;10\n", midnight+second*step)
			}
			write(fmt.Sprintf("rnd/%s/%d.csv", month, i), rows)
		}
	}
	return dir
}

// TestKill kills the program, which cannot clean up: its cleaner does.
func TestKill(t *testing.T) {
	before := readMachine(t)
	n := start(t, "-nodes", "2", "-cpu", "100")
	n.awaitReady(t)
	must.Succeed(t, n.command.Process.Kill())
	<-n.ended
	n.expectNothing(t, before, 15*time.Second)
}

// TestKillAll kills the program and its cleaner. The kernel ends all processes, and the next program removes the rest.
func TestKillAll(t *testing.T) {
	before := readMachine(t)
	n := start(t, "-nodes", "2", "-cpu", "100")
	n.awaitReady(t)
	cleaner := n.role(t, "cleaner")
	must.Succeed(t, cleaner.Kill())
	must.Succeed(t, n.command.Process.Kill())
	<-n.ended
	eventually.TrueWithin(
		t,
		20*time.Second,
		20*time.Millisecond,
		"waiting for the end of all processes",
		nil,
		func(context.Context) (bool, error) {
			return len(processes(n.pid())) == 0 && !n.hasNamespaces(), nil
		},
	)
	n.own = nil // the kernel reuses their numbers
	if _, err := os.Stat(filepath.Join(state, strconv.Itoa(n.pid()))); err != nil {
		t.Errorf("nothing is left for the next program to remove: %v", err)
	}
	next := start(t, "-nodes", "1", "-cpu", "100")
	next.awaitReady(t)
	n.expectNothing(t, before, time.Second)
	must.Succeed(t, syscall.Kill(-next.pid(), syscall.SIGINT))
	<-next.ended
	next.expectNothing(t, before, time.Second)
}

// TestRefused expects exit code 2, a sentence and nothing started for what the machine cannot run.
func TestRefused(t *testing.T) {
	before := readMachine(t)
	for name, tc := range map[string]struct {
		args []string
		user uint32
		want string
	}{
		"CPU":      {[]string{"-nodes", "99", "-cpu", "4000"}, 0, "error: 99 nodes of 4000 millicores: this machine has "},
		"memory":   {[]string{"-nodes", "1", "-cpu", "50", "-memory", "100000000"}, 0, "error: nodes of 100000000 MiB: this machine has "},
		"size":     {[]string{"-nodes", "0"}, 0, "must be 1 to 99 nodes of at least 50 millicores and 128 MiB"},
		"programs": {[]string{"-bin", "/nowhere"}, 0, "/nowhere/kubelet: no such file or directory: build the programs with make nodes-programs"},
		"argument": {[]string{"please"}, 0, `unknown argument "please"`},
		"root":     {[]string{"-nodes", "1", "-cpu", "50"}, 65534, "error: real nodes need root: run the command with sudo"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := bin
			if tc.user != 0 {
				bin = readable(t)
			}
			command := exec.Command(filepath.Join(bin, "nodes"), append([]string{"-bin", bin}, tc.args...)...)
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: tc.user, Gid: tc.user}}
			out, err := command.CombinedOutput()
			if command.ProcessState == nil {
				t.Fatal(err)
			}
			if code := command.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), tc.want) {
				t.Errorf("exit code %d and %q, want 2 and %q", code, out, tc.want)
			}
		})
	}
	if after := readMachine(t); after.mounts != before.mounts || after.links != before.links || after.routes != before.routes {
		t.Error("the machine has changed")
	}
}

// readable returns a folder that each user may read, with a copy of the command, and an empty file in place of each program.
func readable(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "nodes") // t.TempDir is in a folder of this user
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, os.RemoveAll(folder)) })
	must.Succeed(t, os.Chmod(folder, 0o755))
	command, err := os.ReadFile(filepath.Join(bin, "nodes"))
	must.Succeed(t, err)
	for name, content := range map[string][]byte{"nodes": command, "kubelet": nil, "metrics-server": nil, "work": nil} {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), content, 0o755))
	}
	return folder
}
