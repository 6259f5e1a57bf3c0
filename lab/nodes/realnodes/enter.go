package realnodes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Environment variables that tell a process of this program what to be.
const (
	roleVariable = "PLIMSOLL_NODES_ROLE"
	dirVariable  = "PLIMSOLL_NODES_DIR"
)

// Values of roleVariable.
const (
	insideRole  = "inside"
	nodeRole    = "node"
	cleanerRole = "cleaner"
)

// stateDir is the parent of the folders of all clusters. Its file system must be able to hold the upper layers of an overlay.
const stateDir = "/var/tmp/plimsoll-nodes"

// Files in the folder of a cluster.
const (
	lockFile       = "lock"
	insideFile     = "inside"     // the process ID of the process inside, as seen by the machine
	kubeconfigFile = "kubeconfig" // a link to the kubeconfig of the control plane
)

// init keeps the main goroutine on the main thread: namespaces belong to threads, and a process ends with the thread that started it.
func init() { runtime.LockOSThread() }

// RunIfChild runs a node, or cleans up, and does not return if this process was started for that. Otherwise it does nothing. It must be the
// first call of main or TestMain.
func RunIfChild() {
	switch os.Getenv(roleVariable) {
	case nodeRole:
		fail(1, runNode())
	case cleanerRole:
		clean()
		os.Exit(0)
	}
}

// Enter moves this program into namespaces of its own, in which it can start clusters.
//
// The program starts again as the first process of new network, mount and process namespaces; Enter returns in that process only, with
// the standard streams, arguments and folder of the first one, whose exit code is the one of the process inside. No address, route, mount
// or process appears on the machine outside of these namespaces. When the first process ends, even by kill -9, the kernel kills the process
// inside and with it all its descendants, and the network and the mounts end with their namespaces. Then a third process, the cleaner,
// removes the control groups and the folder of the cluster. What is left if that is killed, too, the next program removes.
//
// Requirements that are missing are printed, and the exit code is 2.
func Enter() {
	if os.Getenv(roleVariable) != insideRole {
		if err := CheckMachine(); err != nil {
			fail(2, err)
		}
		runInside()
	}
	if err := setUpInside(); err != nil {
		fail(1, err)
	}
}

// fail prints an error and exits.
func fail(code int, err error) {
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	os.Exit(code)
}

// runInside runs this program inside and exits with its exit code.
func runInside() {
	// One program at a time: another one would remove the folder of this one, which is not locked yet.
	parent, err := os.Open(filepath.Dir(stateDir))
	if err == nil {
		err = unix.Flock(int(parent.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		fail(1, err)
	}
	removeStale()
	dir := filepath.Join(stateDir, strconv.Itoa(os.Getpid()))
	err = os.MkdirAll(filepath.Join(dir, "tmp"), 0o755)
	var lock *os.File
	if err == nil {
		lock, err = os.Create(filepath.Join(dir, lockFile))
	}
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	parent.Close()
	if err != nil {
		fail(1, err)
	}
	cleaner, isAlive, err := startCleaner(dir, lock)
	if err != nil {
		fail(1, err)
	}
	program, err := os.Executable()
	if err != nil {
		fail(1, err)
	}
	inside := exec.Command(program, os.Args[1:]...)
	inside.Env = append(os.Environ(), roleVariable+"="+insideRole, dirVariable+"="+dir, "TMPDIR="+filepath.Join(dir, "tmp"))
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	code := 0
	if err = inside.Start(); err == nil {
		_ = os.WriteFile(filepath.Join(dir, insideFile), []byte(strconv.Itoa(inside.Process.Pid)), 0o644)
		go func() {
			// Ctrl-C goes to both processes. The process inside is the first of its namespace, for which a signal without a handler is
			// ignored, so that a second one has to kill it.
			<-signals
			_ = inside.Process.Signal(syscall.SIGTERM)
			<-signals
			_ = inside.Process.Kill()
		}()
		_ = inside.Wait()
		code = max(inside.ProcessState.ExitCode(), 0)
		if !inside.ProcessState.Exited() {
			code = 1
		}
	}
	isAlive.Close()
	_ = cleaner.Wait()
	if err != nil {
		fail(1, fmt.Errorf("new namespaces: %w", err))
	}
	os.Exit(code)
}

// startCleaner starts the process that cleans up when isAlive is closed, which the kernel does if this process is killed.
func startCleaner(dir string, lock *os.File) (cleaner *exec.Cmd, isAlive io.Closer, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cleaner = exec.Command(program)
	cleaner.Env = append(os.Environ(), roleVariable+"="+cleanerRole, dirVariable+"="+dir)
	cleaner.Stderr = os.Stderr
	cleaner.ExtraFiles = []*os.File{lock} // stays locked until the cleaner ends
	cleaner.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	isAlive, err = cleaner.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return cleaner, isAlive, cleaner.Start()
}

// clean removes what a cluster leaves, after standard input was closed and the processes of the cluster have ended.
func clean() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := removeCluster(os.Getenv(dirVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "error: cleaning up:", err)
	}
}

// removeStale removes what killed programs have left.
func removeStale() {
	dirs, _ := filepath.Glob(filepath.Join(stateDir, "*"))
	for _, dir := range dirs {
		lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR, 0)
		if err == nil {
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		if err == nil || errors.Is(err, os.ErrNotExist) {
			_ = removeCluster(dir)
		}
		lock.Close()
	}
}

// cleanTimeout bounds the time until the kernel has ended killed processes.
const cleanTimeout = 15 * time.Second

// removeCluster removes the control groups and the folder of a cluster whose process inside has been killed.
func removeCluster(dir string) error {
	groups, err := findCgroups()
	if err != nil {
		return err
	}
	path := filepath.Join(cgroupTop, filepath.Base(dir))
	for end := time.Now().Add(cleanTimeout); ; time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // until all have ended
		if err = groups.remove(path); err == nil || time.Now().After(end) {
			break
		}
	}
	// The parent stays while another cluster uses it, whose groups without processes must stay, too.
	for _, h := range groups.hierarchies {
		_ = unix.Rmdir(filepath.Join(h.mount, cgroupTop))
	}
	err = errors.Join(err, os.RemoveAll(dir))
	_ = os.Remove(stateDir)
	return err
}

// setUpInside makes the mounts private, mounts /proc, starts the loopback device, and enters the control group of the cluster.
func setUpInside() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	groups, err := findCgroups()
	if err != nil {
		return err
	}
	path := clusterGroup()
	if err := errors.Join(groups.create(path+"/"+daemons), groups.enter(path+"/"+daemons)); err != nil {
		return err
	}
	// Everything of the cluster has precedence over other work on this machine, which could otherwise take the CPU time of nodes.
	if err := errors.Join(groups.setShares(cgroupTop, 200000), groups.setShares(path+"/"+daemons, 20000)); err != nil {
		return err
	}
	return run("ip", "link", "set", "lo", "up")
}

// clusterGroup returns the control group of the cluster of this process.
func clusterGroup() string { return cgroupTop + "/" + filepath.Base(os.Getenv(dirVariable)) }

// run runs a program. An error contains its output.
func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// Running is a program that runs inside of its namespaces.
type Running struct {
	// ID is the process ID of the program that was started, which is the name of its folder Dir.
	ID, Dir string
	// Inside is the process ID of the process inside, as seen by the machine.
	Inside int
}

// Kubeconfig returns the path of a kubeconfig of its cluster.
func (r *Running) Kubeconfig() string { return filepath.Join(r.Dir, kubeconfigFile) }

// Choose returns the running program with an ID, or the only one if the ID is empty. An error lists those that run.
func Choose(id string) (*Running, error) { return choose(running(stateDir), id) }

// choose is Choose for a list of programs.
func choose(all []Running, id string) (*Running, error) {
	var list strings.Builder
	for i := range all {
		if all[i].ID == id || id == "" && len(all) == 1 {
			return &all[i], nil
		}
		command, _ := os.ReadFile(filepath.Join("/proc", all[i].ID, "cmdline"))
		fmt.Fprintf(&list, "\n  %s  %s", all[i].ID, strings.ReplaceAll(strings.TrimSuffix(string(command), "\x00"), "\x00", " "))
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("no cluster runs")
	case id == "":
		return nil, fmt.Errorf("%d clusters run, choose one of them by its ID:%s", len(all), &list)
	}
	return nil, fmt.Errorf("no cluster %s runs, these run:%s", id, &list)
}

// running returns the programs that run: those whose folder, in the folder state, is locked. A program that was killed, with its cleaner,
// leaves an unlocked folder.
func running(state string) (all []Running) {
	files, _ := filepath.Glob(filepath.Join(state, "*", insideFile))
	for _, file := range files {
		dir := filepath.Dir(file)
		lock, err := os.Open(filepath.Join(dir, lockFile))
		if err != nil {
			continue
		}
		isStale := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
		lock.Close()
		raw, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(string(raw)); err == nil && !isStale {
			all = append(all, Running{ID: filepath.Base(dir), Dir: dir, Inside: pid})
		}
	}
	return all
}
