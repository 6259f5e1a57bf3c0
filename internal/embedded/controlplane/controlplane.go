// Package controlplane runs a Kubernetes control plane on this machine for the demo and the tests:
// etcd, kube-apiserver, the controllers of Deployments, ReplicaSets and Jobs, and simulated kubelets.
// Nothing has to be installed.
//
// All servers listen on free ports of 127.0.0.1 with generated certificates. They run in a child process,
// which is the calling program started again: several control planes can run at the same time, each with
// its own global state. The child exits when Stop is called, and also when the parent is killed, because
// that closes its standard input. The caller's main or TestMain must call RunIfChild first.
//
// The control plane has no garbage collector, no service accounts in pods, no network and no containers.
package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// startTimeout bounds the time until the API server is ready, which takes about 5 s on two cores.
const startTimeout = 3 * time.Minute

// Options configure a control plane. The zero value is ready to use.
type Options struct {
	// APIServerArgs are additional flags of kube-apiserver, such as --feature-gates=A=true.
	APIServerArgs []string
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Dir is the directory of all files of the control plane. It is removed when the control plane stops.
	Dir string
	// Kubeconfig is the path of a kubeconfig with administrator rights.
	Kubeconfig string

	authority *authority
	address   string
	etcd      string
	child     *exec.Cmd
	stdin     io.Closer
	exited    chan struct{}
	stopOnce  sync.Once
}

// hello is the message of the child when it serves.
type hello struct {
	Address string `json:"address"`
	Etcd    string `json:"etcd"`
}

// Start starts a control plane and waits until it is ready. If that fails, it removes all files, and the
// error contains the last lines of the server log. The control plane runs until Stop is called or ctx
// ends.
func Start(ctx context.Context, options Options) (_ *ControlPlane, err error) {
	dir, err := os.MkdirTemp("", "plimsoll-control-plane-")
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), exited: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.logTail())
			cp.Stop()
		}
	}()
	if cp.authority, err = newAuthority(dir); err != nil {
		close(cp.exited)
		return nil, fmt.Errorf("creating certificates: %w", err)
	}
	greeting, err := cp.startChild(options)
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := cp.await(starting, greeting); err != nil {
		return nil, fmt.Errorf("waiting for the control plane: %w", err)
	}
	if err := cp.WriteKubeconfig(cp.Kubeconfig, "admin", "system:masters"); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, cp.Stop)
	return cp, nil
}

// startChild starts this program again to run the servers. It sends the first message of the child on
// the channel.
func (cp *ControlPlane) startChild(options Options) (<-chan hello, error) {
	started := false
	defer func() {
		if !started {
			close(cp.exited)
		}
	}()
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	logFile, err := os.Create(cp.logPath())
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	assignment, err := json.Marshal(assignment{Dir: cp.Dir, APIServerArgs: options.APIServerArgs})
	if err != nil {
		return nil, err
	}
	cp.child = exec.Command(program)
	cp.child.Env = append(os.Environ(), childVariable+"="+string(assignment))
	cp.child.Stderr = logFile
	if cp.stdin, err = cp.child.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cp.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cp.child.Start(); err != nil {
		return nil, err
	}
	started = true
	greeting := make(chan hello, 1)
	go func() {
		var h hello
		if line, err := bufio.NewReader(stdout).ReadBytes('\n'); err == nil && json.Unmarshal(line, &h) == nil {
			greeting <- h
		}
		_, _ = io.Copy(io.Discard, stdout)
		_ = cp.child.Wait()
		close(cp.exited)
	}()
	return greeting, nil
}

// await waits until the API server is ready.
func (cp *ControlPlane) await(ctx context.Context, greeting <-chan hello) error {
	select {
	case h := <-greeting:
		cp.address, cp.etcd = h.Address, h.Etcd
	case <-cp.exited:
		return errors.New("the servers exited")
	case <-ctx.Done():
		return ctx.Err()
	}
	config, err := cp.Config("admin", "system:masters")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-cp.exited:
			return false, errors.New("the servers exited")
		default:
		}
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
}

// Stop stops the control plane, waits for it and removes its files. It may be called more than once.
func (cp *ControlPlane) Stop() {
	cp.stopOnce.Do(func() {
		if cp.stdin != nil {
			_ = cp.stdin.Close()
		}
		select {
		case <-cp.exited:
		case <-time.After(15 * time.Second):
			_ = cp.child.Process.Kill()
			<-cp.exited
		}
		_ = os.RemoveAll(cp.Dir)
	})
}

// Exited returns a channel that is closed when the servers have exited.
func (cp *ControlPlane) Exited() <-chan struct{} { return cp.exited }

// Address returns the URL of the API server.
func (cp *ControlPlane) Address() string { return cp.address }

// Config returns a client configuration without a rate limit for a user in some groups, such as
// system:masters.
func (cp *ControlPlane) Config(user string, groups ...string) (*rest.Config, error) {
	cert, key, err := cp.authority.client(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            cp.address,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.authority.certPEM, CertData: cert, KeyData: key},
		QPS:             -1,
	}, nil
}

// WriteKubeconfig writes a kubeconfig for a user in some groups.
func (cp *ControlPlane) WriteKubeconfig(path, user string, groups ...string) error {
	config, err := cp.Config(user, groups...)
	if err != nil {
		return err
	}
	const name = "plimsoll"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}

// PeakMemory returns the largest resident memory of the servers so far in bytes, or 0 if it is unknown.
func (cp *ControlPlane) PeakMemory() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cp.child.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// logPath returns the path of the server log.
func (cp *ControlPlane) logPath() string { return filepath.Join(cp.Dir, "control-plane.log") }

// logTail returns the last lines of the server log as an error, nil if the log is empty.
func (cp *ControlPlane) logTail() error {
	raw, _ := os.ReadFile(cp.logPath())
	if len(raw) == 0 {
		return nil
	}
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	lines = lines[max(0, len(lines)-20):]
	return fmt.Errorf("last lines of the server log:\n%s", bytes.Join(lines, []byte("\n")))
}

// Compact removes the history of all objects from etcd up to the present revision.
func (cp *ControlPlane) Compact(ctx context.Context) error {
	client, err := cp.etcdClient(ctx)
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { _ = client.Close() }()
	present, err := client.Get(ctx, "/registry", clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("reading the revision of etcd: %w", err)
	}
	if _, err := client.Compact(ctx, present.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	return nil
}

// etcdClient returns a client of etcd.
func (cp *ControlPlane) etcdClient(ctx context.Context) (*clientv3.Client, error) {
	tls, err := transport.TLSInfo{
		CertFile: filepath.Join(cp.Dir, clientCert), KeyFile: filepath.Join(cp.Dir, clientKey),
		TrustedCAFile: filepath.Join(cp.Dir, caFile),
	}.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{cp.etcd}, TLS: tls, Context: ctx})
}
