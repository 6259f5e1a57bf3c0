// Package controlplane runs a Kubernetes control plane on this machine for the demo and the tests:
// etcd, kube-apiserver, the controllers of Deployments, ReplicaSets and Jobs, and, unless nodes are real, simulated kubelets.
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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
)

// startTimeout bounds the time until the API server is ready, which takes about 5 s on two cores.
const startTimeout = 3 * time.Minute

// Options configure a control plane. The zero value is ready to use.
type Options struct {
	// APIServerArgs are additional flags of kube-apiserver, such as --feature-gates=A=true.
	APIServerArgs []string
	// RealNodes leaves nodes and their pods to real kubelets: none are simulated.
	RealNodes bool
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Dir is the directory of all files of the control plane. It is removed when the control plane stops.
	Dir string
	// Kubeconfig is the path of a kubeconfig with administrator rights.
	Kubeconfig string
	// Etcd is the URL of etcd. Its clients need the files ca.crt, client.crt and client.key in Dir.
	Etcd string

	authority *authority
	address   string
	// child runs the servers, until stdin is closed. It is nil if it could not be started.
	child *subprocess.Process
	stdin io.Closer
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
	cp := &ControlPlane{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.logTail())
			cp.Stop()
		}
	}()
	if cp.authority, err = newAuthority(dir); err != nil {
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
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	logFile, err := os.Create(cp.logPath())
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	assignment, err := json.Marshal(assignment{Dir: cp.Dir, APIServerArgs: options.APIServerArgs, RealNodes: options.RealNodes})
	if err != nil {
		return nil, err
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), childVariable+"="+string(assignment))
	command.Stderr = logFile
	if cp.stdin, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if cp.child, err = subprocess.Start(command); err != nil {
		return nil, err
	}
	greeting := make(chan hello, 1)
	go func() {
		var h hello
		if json.NewDecoder(stdout).Decode(&h) == nil {
			greeting <- h
		}
		_, _ = io.Copy(io.Discard, stdout)
	}()
	return greeting, nil
}

// await waits until the API server is ready.
func (cp *ControlPlane) await(ctx context.Context, greeting <-chan hello) error {
	select {
	case h := <-greeting:
		cp.address, cp.Etcd = h.Address, h.Etcd
	case <-cp.child.Exited():
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
		case <-cp.child.Exited():
			return false, errors.New("the servers exited")
		default:
		}
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
}

// Stop stops the control plane, waits for it and removes its files. It may be called more than once.
func (cp *ControlPlane) Stop() {
	if cp.child != nil {
		_ = cp.stdin.Close()
		select {
		case <-cp.child.Exited():
		case <-time.After(15 * time.Second):
			cp.child.Kill()
		}
	}
	_ = os.RemoveAll(cp.Dir)
}

// Exited returns a channel that is closed when the servers have exited.
func (cp *ControlPlane) Exited() <-chan struct{} { return cp.child.Exited() }

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
	return WriteKubeconfig(path, config)
}

// WriteKubeconfig writes a kubeconfig with the server and the credentials of a client configuration.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "plimsoll"
	user := &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}

// ProcessID returns the ID of the process of the servers.
func (cp *ControlPlane) ProcessID() int { return cp.child.ID() }

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

// InstallCRDs creates CRDs from their manifests, unless they exist, and waits until they are served.
func InstallCRDs(ctx context.Context, config *rest.Config, manifests ...[]byte) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	for i, manifest := range manifests {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(manifest, crd); err != nil {
			return fmt.Errorf("CRD %d: %w", i, err)
		}
		// The CRD exists if a busy API server has created it and client-go repeats the request because the answer was late.
		if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return isDiscoverable(client.Discovery(), crd), nil
		})
		if err != nil {
			return fmt.Errorf("CRD %s is not served: %w", crd.Name, err)
		}
	}
	return nil
}

// isDiscoverable reports whether the API server lists the resource of a CRD in all its served
// versions. It is established before: clients that look up the resource fail until it is listed.
func isDiscoverable(client discovery.DiscoveryInterface, crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list, err := client.ServerResourcesForGroupVersion(crd.Spec.Group + "/" + version.Name)
		if err != nil {
			return false
		}
		isListed := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural })
		if !isListed {
			return false
		}
	}
	return true
}
