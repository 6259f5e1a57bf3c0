package realnodes

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"text/template"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed files
var files embed.FS

// nodeVariable is the environment variable with the nodeSpec of a process of the role node.
const nodeVariable = "PLIMSOLL_NODES_NODE"

// nodeSpec is what the process of a node needs. Its fields are read by templates, too.
type nodeSpec struct {
	Name, Address string
	// Subnet is the third byte of the addresses of the node's pods.
	Subnet int
	// Dir has the certificates of the control plane, NodeDir is the folder of the node.
	Dir, NodeDir string
	// Group is the control group of the node.
	Group, Kubeconfig, Kubelet, Image string
	CPU                               int
	// ReservedCPU and ReservedMemory are what the machine has beyond the node, in millicores and MiB.
	ReservedCPU, ReservedMemory int
}

// rendered returns a file of this package, a template, with the values of the node.
func rendered(name string, values any) (string, error) {
	t, err := template.ParseFS(files, "files/"+name)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, values)
	return out.String(), err
}

// runNode is the first process of a node: it makes its namespaces look like a machine of its own, runs containerd and the kubelet, and
// ends when one of them does. It returns an error at its end.
func runNode() error {
	var n nodeSpec
	if err := json.Unmarshal([]byte(os.Getenv(nodeVariable)), &n); err != nil {
		return err
	}
	for _, step := range []func() error{n.ownCgroups, n.ownFolders, n.ownSysctls, n.configure} {
		if err := step(); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	runtimeArgs := []string{"--config", filepath.Join(n.NodeDir, "containerd.toml")}
	containerd, err := n.start("containerd", "containerd", runtimeArgs...)
	if err != nil {
		return err
	}
	if err := n.importImage(); err != nil {
		return err
	}
	kubelet, err := n.start("kubelet", n.Kubelet, "--config", filepath.Join(n.NodeDir, "kubelet.yaml"), "--kubeconfig", n.Kubeconfig,
		"--hostname-override", n.Name, "--node-ip", n.Address, "--v", "2")
	if err != nil {
		return err
	}
	// The first process of a namespace is the parent of all processes whose parent has ended.
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		switch {
		case pid == containerd || pid == kubelet:
			return fmt.Errorf("%s: containerd or kubelet has ended: see its log in %s", n.Name, n.NodeDir)
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// start starts a program of the node, which is not waited for, and returns its process ID.
func (n *nodeSpec) start(name, program string, args ...string) (pid int, err error) {
	log, err := os.Create(filepath.Join(n.NodeDir, name+".log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return 0, err
	}
	return command.Process.Pid, nil
}

// importImage waits until containerd responds, and gives it the image.
func (n *nodeSpec) importImage() error {
	var err error
	for range 100 {
		if err = run("ctr", "version"); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // until containerd listens
	}
	if err == nil {
		err = run("ctr", "--namespace", "k8s.io", "images", "import", n.Image)
	}
	return err
}

// ownCgroups makes the control group of the node the root that its processes see: the kubelet then reports the use of this node, not of
// the machine. The daemons are in a group beside the pods, whose quota is the size of the node.
func (n *nodeSpec) ownCgroups() error {
	groups, err := findCgroups()
	if err != nil {
		return err
	}
	if err := groups.enter(n.Group); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("control group namespace: %w", err)
	}
	if err := unix.Unmount(cgroupMount, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting %s: %w", cgroupMount, err)
	}
	if err := groups.mount(); err != nil {
		return err
	}
	// With version 2, a group whose children have controllers has no processes of its own: leave it before children get them.
	if groups.isVersion2 {
		if err := errors.Join(os.Mkdir(filepath.Join(cgroupMount, daemons), 0o755), groups.enter(daemons)); err != nil {
			return err
		}
	}
	return errors.Join(groups.create(daemons), groups.create(pods), groups.enter(daemons), groups.setQuota(pods, n.CPU),
		groups.setShares(daemons, 10000))
}

// mount mounts the hierarchies as the namespace of this process sees them, at the usual places.
func (c *cgroups) mount() error {
	if c.isVersion2 {
		return unix.Mount("cgroup2", cgroupMount, "cgroup2", 0, "")
	}
	if err := unix.Mount("cgroup", cgroupMount, "tmpfs", 0, ""); err != nil {
		return err
	}
	for _, h := range c.hierarchies {
		dir := filepath.Join(cgroupMount, strings.TrimPrefix(h.options, "name="))
		options := h.options
		if strings.HasPrefix(options, "name=") {
			options = "none," + options
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("cgroup", dir, "cgroup", 0, options); err != nil {
			return fmt.Errorf("mounting %s: %w", dir, err)
		}
		// Programs look for the controllers of a common hierarchy under each name.
		if names := strings.Split(h.options, ","); len(names) > 1 {
			for _, name := range names {
				_ = os.Symlink(filepath.Base(dir), filepath.Join(cgroupMount, name))
			}
		}
	}
	return nil
}

// ownFolders gives the node folders of its own at the default paths of its daemons.
func (n *nodeSpec) ownFolders() error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := unix.Mount("run", "/run", "tmpfs", 0, ""); err != nil {
		return err
	}
	for _, path := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log", "/etc/cni/net.d"} {
		own := filepath.Join(n.NodeDir, "root", path)
		if err := errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(path, 0o755)); err != nil {
			return err
		}
		if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", path, err)
		}
	}
	return os.MkdirAll(filepath.Join(n.NodeDir, "static"), 0o755)
}

// ownSysctls shows the kubelet the values that it wants, so that it does not change the kernel of this machine.
func (n *nodeSpec) ownSysctls() error {
	for path, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		own := filepath.Join("/run", strings.ReplaceAll(path, "/", "-"))
		if err := os.WriteFile(own, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(own, "/proc/sys/"+path, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("mounting /proc/sys/%s: %w", path, err)
		}
	}
	return nil
}

// configure writes the configuration files.
func (n *nodeSpec) configure() error {
	for name, path := range map[string]string{
		"kubelet.yaml": filepath.Join(n.NodeDir, "kubelet.yaml"), "containerd.toml": filepath.Join(n.NodeDir, "containerd.toml"),
		"cni.conflist": "/etc/cni/net.d/10-plimsoll.conflist",
	} {
		text, err := rendered(name, n)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Node is a running node.
type Node struct {
	Name, Address string
	// StaticPods is the folder in which the kubelet looks for static pods.
	StaticPods string

	spec    nodeSpec
	process *exec.Cmd
	ended   chan struct{}
}

// start starts the process of the node.
func (n *Node) start() error {
	raw, err := json.Marshal(n.spec)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	n.process = exec.Command(program)
	n.process.Env = append(os.Environ(), roleVariable+"="+nodeRole, nodeVariable+"="+string(raw))
	log, err := os.OpenFile(filepath.Join(n.spec.NodeDir, "node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	n.process.Stdout, n.process.Stderr = log, log
	n.process.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if err := n.process.Start(); err != nil {
		return err
	}
	n.ended = make(chan struct{})
	go func() {
		_ = n.process.Wait()
		close(n.ended)
	}()
	return nil
}

// stop kills the node and waits until its processes have ended, as a loss of power does.
func (n *Node) stop() {
	if n.process == nil || n.process.Process == nil {
		return
	}
	_ = n.process.Process.Kill()
	<-n.ended
}

// reserved returns what the machine has beyond a node, in millicores and MiB.
func reserved(options *Options) (cpu, memory int) {
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info)
	total := int(info.Totalram * uint64(info.Unit) >> 20)
	return 1000*runtime.NumCPU() - options.CPU, total - options.Memory
}
