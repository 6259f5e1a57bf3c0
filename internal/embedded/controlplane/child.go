package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
)

// childVariable is the environment variable that makes a program run the servers of a control plane.
// Its value is an assignment in JSON.
const childVariable = "PLIMSOLL_CONTROL_PLANE"

// APIServerVariable is the environment variable with the path of a kube-apiserver program, which runs in place of the API server of this
// program. It is for tests with other versions of Kubernetes.
const APIServerVariable = "PLIMSOLL_KUBE_APISERVER"

// assignment configures the child process.
type assignment struct {
	Dir           string   `json:"dir"`
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
	RealNodes     bool     `json:"realNodes,omitempty"`
}

// RunIfChild runs the servers of a control plane and does not return if this process was started for
// that. Otherwise it does nothing.
func RunIfChild() {
	raw, ok := os.LookupEnv(childVariable)
	if !ok {
		return
	}
	if err := runChild(raw); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runChild runs the servers until standard input is closed. It then removes the directory, because the
// parent may have been killed. If the servers fail, it keeps the directory: the parent reads their log.
func runChild(raw string) error {
	var assigned assignment
	if err := json.Unmarshal([]byte(raw), &assigned); err != nil {
		return fmt.Errorf("%s: %w", childVariable, err)
	}
	// Ctrl-C in a terminal sends the signal to all processes of the group. The parent handles it and
	// closes standard input.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	defer func() {
		if ctx.Err() != nil {
			_ = os.RemoveAll(assigned.Dir)
		}
	}()

	etcd, endpoint, err := startEtcd(assigned.Dir)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer etcd.Close()
	args := apiServerArgs(assigned, endpoint)
	var address string
	serverEnded := make(chan error, 1)
	if program := os.Getenv(APIServerVariable); program != "" {
		port, err := subprocess.FreePort()
		if err != nil {
			return err
		}
		address = fmt.Sprintf("https://127.0.0.1:%d", port)
		args = append(args, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port))
		go func() { serverEnded <- runProgram(ctx, program, args) }()
	} else {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		address = "https://" + listener.Addr().String()
		go func() { serverEnded <- runAPIServer(ctx, args, listener) }()
	}

	file := func(name string) string { return filepath.Join(assigned.Dir, name) }
	go runNodeSide(ctx, &rest.Config{
		Host: address, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: file(caFile), CertFile: file(clientCert), KeyFile: file(clientKey)},
	}, assigned.RealNodes)
	if err := json.NewEncoder(os.Stdout).Encode(hello{Address: address, Etcd: endpoint}); err != nil {
		return err
	}
	err = <-serverEnded
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("kube-apiserver: %w", err)
}

// startEtcd starts etcd and returns its client URL.
func startEtcd(dir string) (*embed.Etcd, string, error) {
	anyPort := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
	tls := transport.TLSInfo{
		CertFile: filepath.Join(dir, serverCert), KeyFile: filepath.Join(dir, serverKey),
		TrustedCAFile: filepath.Join(dir, caFile), ClientCertAuth: true,
	}
	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ClientTLSInfo, config.PeerTLSInfo = tls, tls
	config.EnableGRPCGateway = false
	config.LogLevel = "error"
	// The data need not survive a crash.
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = 8 << 30
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, "https://" + etcd.Clients[0].Addr().String(), nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, "", err
	}
}

// apiServerArgs returns the flags of kube-apiserver.
func apiServerArgs(assigned assignment, etcdEndpoint string) []string {
	file := func(name string) string { return filepath.Join(assigned.Dir, name) }
	return append([]string{
		"--etcd-servers=" + etcdEndpoint,
		"--etcd-cafile=" + file(caFile), "--etcd-certfile=" + file(clientCert), "--etcd-keyfile=" + file(clientKey),
		"--tls-cert-file=" + file(serverCert), "--tls-private-key-file=" + file(serverKey),
		"--client-ca-file=" + file(caFile),
		"--kubelet-client-certificate=" + file(clientCert), "--kubelet-client-key=" + file(clientKey),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://plimsoll.invalid",
		"--service-account-key-file=" + file(tokenKey), "--service-account-signing-key-file=" + file(tokenKey),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
		// No controller creates service accounts or removes taints from nodes.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		// Clients are not limited by each other.
		"--enable-priority-and-fairness=false",
	}, assigned.APIServerArgs...)
}

// runProgram runs a kube-apiserver program until ctx ends. It writes its log to standard error.
func runProgram(ctx context.Context, program string, args []string) error {
	command := exec.Command(program, args...)
	command.Stderr = os.Stderr
	process, err := subprocess.Start(command)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-process.Exited():
	}
	process.Stop()
	return fmt.Errorf("%s exited", program)
}

// runAPIServer runs the kube-apiserver of this program until ctx ends.
func runAPIServer(ctx context.Context, args []string, listener net.Listener) error {
	server := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range server.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	server.GenericServerRunOptions.ComponentGlobalsRegistry = releaseRegistry{server.GenericServerRunOptions.ComponentGlobalsRegistry}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	server.SecureServing.Listener = listener
	server.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	server.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	completed, err := server.Complete(ctx)
	if err != nil {
		return err
	}
	for _, err := range completed.Validate() {
		return err
	}
	klog.Background().V(2).Info("Serving the Kubernetes API", "address", listener.Addr(), "features", utilfeature.DefaultFeatureGate)
	return app.Run(ctx, completed)
}

// releaseRegistry reports the release of Kubernetes that the program is built from as the version of the
// API server. Builds of Kubernetes set it in the linker; a program that uses Kubernetes as a module reports
// v0.0.0, which charts with a kubeVersion refuse.
type releaseRegistry struct {
	compatibility.ComponentGlobalsRegistry
}

// EffectiveVersionFor implements ComponentGlobalsRegistry.
func (r releaseRegistry) EffectiveVersionFor(component string) compatibility.EffectiveVersion {
	return releaseVersion{r.ComponentGlobalsRegistry.EffectiveVersionFor(component)}
}

// releaseVersion is an effective version with the release of Kubernetes.
type releaseVersion struct{ compatibility.EffectiveVersion }

// Info implements EffectiveVersion.
func (v releaseVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	// The patch level is unknown to programs without a list of modules.
	info.GitVersion = fmt.Sprintf("v%s.%s.0", info.Major, info.Minor)
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "k8s.io/kubernetes" {
				info.GitVersion = module.Version
			}
		}
	}
	return info
}
