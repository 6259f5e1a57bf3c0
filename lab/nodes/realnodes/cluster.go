// Package realnodes runs a Kubernetes cluster with real kubelets on one machine.
//
// A node is a kubelet and a containerd in mount, process and control group namespaces of its own. The kernel enforces its size: the control
// group of its pods has a quota of CPU time and a limit of memory. The control plane is the embedded one, without simulated kubelets, with
// the real metrics-server, and Prometheus and kube-state-metrics on demand. Control plane, nodes, pods and clients share one network
// namespace that Enter makes: the nodes have addresses on a bridge inside it, and nothing outside can be reached or reaches it.
//
// Only Linux as root can run it, with control groups of version 1 or 2. Version 2 is written by the documentation of the kernel and of
// runc, and has not been tested.
package realnodes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// Options configure a cluster.
type Options struct {
	// Nodes is the number of nodes, 1 to 99.
	Nodes int
	// CPU is the allocatable amount of each node in millicores, Memory in MiB.
	CPU, Memory int
	// Bin is the folder of the programs that `make nodes-programs` builds, as an absolute path.
	Bin string
}

// Cluster is a running cluster.
type Cluster struct {
	// Dir is the folder of its files and logs, which is removed when the program ends.
	Dir string
	// Kubeconfig is the path of a kubeconfig with administrator rights, which is valid inside only.
	Kubeconfig string
	// Config and Client have administrator rights.
	Config *rest.Config
	Client *kubernetes.Clientset
	Nodes  []*Node
	// MetricsServer is the running metrics-server.
	MetricsServer *subprocess.Process

	options Options
	groups  *cgroups
	plane   *controlplane.ControlPlane
	servers []*subprocess.Process
}

const (
	bridge = "plim0"
	// readyTimeout bounds the time until all nodes are ready.
	readyTimeout = 2 * time.Minute
	poll         = 50 * time.Millisecond
)

// Start starts a cluster and waits until its nodes are ready. The program must be inside (see Enter). One cluster runs at a time.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	c := &Cluster{Dir: os.Getenv(dirVariable), options: options}
	if c.Dir == "" {
		return nil, errors.New("the program is not inside of its namespaces: it must call Enter first")
	}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	if c.groups, err = findCgroups(); err != nil {
		return nil, err
	}
	if err := c.addNetwork(); err != nil {
		return nil, err
	}
	if err := c.startControlPlane(ctx); err != nil {
		return nil, err
	}
	image := filepath.Join(c.Dir, "image.tar")
	if err := writeImage(image, c.Program("work")); err != nil {
		return nil, err
	}
	for i := range options.Nodes {
		if err := c.addNode(i+1, image); err != nil {
			return nil, err
		}
	}
	if err := c.StartMetricsServer(); err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return c, c.AwaitReady(ready)
}

// Program returns the path of a program in the folder of programs.
func (c *Cluster) Program(name string) string { return filepath.Join(c.options.Bin, name) }

// addNetwork adds the bridge with the addresses of the nodes.
func (c *Cluster) addNetwork() error {
	commands := []string{"link add " + bridge + " type bridge", "addr add 10.77.0.1/16 dev " + bridge}
	for i := range c.options.Nodes {
		commands = append(commands, "addr add "+addressOf(i+1)+"/32 dev "+bridge)
	}
	file := filepath.Join(c.Dir, "network")
	text := strings.Join(append(commands, "link set "+bridge+" up"), "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	return run("ip", "-batch", file)
}

func addressOf(number int) string { return fmt.Sprintf("10.77.0.%d", 100+number) }

// startControlPlane starts the control plane with the objects that nodes need.
func (c *Cluster) startControlPlane(ctx context.Context) (err error) {
	frontProxy, err := c.frontProxy()
	if err != nil {
		return err
	}
	if c.plane, err = controlplane.Start(
		ctx,
		controlplane.Options{RealNodes: true, APIServerArgs: append(frontProxy, "--advertise-address=10.77.0.1")},
	); err != nil {
		return err
	}
	c.Kubeconfig = c.plane.Kubeconfig
	link := filepath.Join(c.Dir, kubeconfigFile)
	_ = os.Remove(link) // of a cluster that this program has stopped
	if err := os.Symlink(c.Kubeconfig, link); err != nil {
		return err
	}
	if c.Config, err = c.plane.Config("admin", "system:masters"); err != nil {
		return err
	}
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	text, err := files.ReadFile("files/objects.yaml")
	if err != nil {
		return err
	}
	objects, err := program.ObjectsOf(string(text))
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, objects); err != nil {
		return err
	}
	// A node that registers before the policy is in force keeps the capacity of the machine for minutes.
	probe := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi"),
	}}}
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		node, err := c.Client.CoreV1().Nodes().Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && node.Status.Capacity.Cpu().MilliValue() == 1100, nil
	})
}

// frontProxy creates the client certificate of the aggregation layer and returns the flags of kube-apiserver for it.
func (c *Cluster) frontProxy() ([]string, error) {
	const name = "front-proxy-client"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	signed, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(c.Dir, "front-proxy.crt"), filepath.Join(c.Dir, "front-proxy.key")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed.Raw})
	return []string{
		"--requestheader-client-ca-file=" + certFile, "--requestheader-allowed-names=" + name,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + certFile, "--proxy-client-key-file=" + keyFile,
	}, errors.Join(os.WriteFile(certFile, certPEM, 0o600), os.WriteFile(keyFile, keyPEM, 0o600))
}

// Apply creates or updates objects with server-side apply.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	applier, err := client.New(c.Config, client.Options{})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := applier.Apply(
			ctx,
			client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner("real-nodes"),
			client.ForceOwnership,
		); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// addNode starts a node.
func (c *Cluster) addNode(number int, image string) error {
	name := fmt.Sprintf("node-%d", number)
	cpu, memory := reserved(&c.options)
	n := &Node{Name: name, Address: addressOf(number), spec: nodeSpec{
		Name: name, Address: addressOf(number), Subnet: number, Dir: c.plane.Dir, NodeDir: filepath.Join(c.Dir, name),
		Group: clusterGroup() + "/" + name, Kubeconfig: filepath.Join(c.Dir, name, "kubeconfig"), Kubelet: c.Program("kubelet"),
		Image: image, CPU: c.options.CPU, ReservedCPU: cpu, ReservedMemory: memory,
	}}
	n.StaticPods = filepath.Join(n.spec.NodeDir, "static")
	if err := errors.Join(os.MkdirAll(n.spec.NodeDir, 0o755), c.groups.create(n.spec.Group),
		c.groups.setShares(n.spec.Group, 10000),
		c.plane.WriteKubeconfig(n.spec.Kubeconfig, "system:node:"+name, "system:nodes")); err != nil {
		return err
	}
	c.Nodes = append(c.Nodes, n)
	return n.start()
}

// AwaitReady waits until all nodes are ready.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	isReady := func(node *v1.Node) bool {
		return slices.ContainsFunc(node.Status.Conditions, func(condition v1.NodeCondition) bool {
			return condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue
		})
	}
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		ready := 0
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready++
			}
		}
		for _, n := range c.Nodes {
			select {
			case <-n.ended:
				return false, n.failure()
			default:
			}
		}
		return err == nil && ready == len(c.Nodes), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d nodes: %w", len(c.Nodes), err)
	}
	return nil
}

// failure returns the last lines of the logs of a node that has ended.
func (n *Node) failure() error {
	failed := fmt.Errorf("%s has ended", n.Name)
	for _, name := range []string{"node.log", "containerd.log", "kubelet.log"} {
		raw, _ := os.ReadFile(filepath.Join(n.spec.NodeDir, name))
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		failed = fmt.Errorf("%w\n%s: %s", failed, name, strings.Join(lines[max(len(lines)-3, 0):], "\n"))
	}
	return failed
}

// Restart kills a node, removes its object, and starts it again with the same name and without its pods.
func (c *Cluster) Restart(ctx context.Context, n *Node) error {
	n.stop()
	if err := c.Client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	none := int64(0)
	pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		err = errors.Join(err, c.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}))
	}
	if err := errors.Join(
		err,
		c.groups.remove(n.spec.Group),
		os.RemoveAll(n.spec.NodeDir+"/root"),
		c.groups.create(n.spec.Group),
	); err != nil {
		return err
	}
	if err := n.start(); err != nil {
		return err
	}
	return c.AwaitReady(ctx)
}

// Usage returns what the kernel has counted for the pods of a node.
func (c *Cluster) Usage(n *Node) (Usage, error) { return c.groups.usage(n.spec.Group + "/" + pods) }

// Stop stops everything that was started. It may be called more than once.
func (c *Cluster) Stop() {
	for _, n := range c.Nodes {
		n.stop()
	}
	for _, server := range slices.Backward(c.servers) {
		server.Stop()
	}
	if c.plane != nil {
		c.plane.Stop()
	}
	_ = exec.Command("ip", "link", "del", bridge).Run()
	for _, n := range c.Nodes {
		_ = c.groups.remove(n.spec.Group)
		_ = os.RemoveAll(n.spec.NodeDir)
	}
	c.Nodes, c.servers = nil, nil
}
