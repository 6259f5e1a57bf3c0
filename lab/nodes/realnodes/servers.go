package realnodes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// Resolution is the interval at which metrics-server reads the kubelets, the shortest that it allows with their timeout.
const Resolution = 10 * time.Second

// StartServer starts a program that Stop stops. Its output goes to NAME.log in the folder of the cluster.
func (c *Cluster) StartServer(name, path string, args ...string) (*subprocess.Process, error) {
	log, err := os.Create(filepath.Join(c.Dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr = log, log
	server, err := subprocess.Start(command)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.servers = append(c.servers, server)
	return server, nil
}

// StartMetricsServer starts the metrics-server, as Start does.
func (c *Cluster) StartMetricsServer() (err error) {
	c.MetricsServer, err = c.StartServer("metrics-server", c.Program("metrics-server"), "--bind-address=127.0.0.1", "--secure-port=4443",
		"--cert-dir="+filepath.Join(c.Dir, "metrics-server"), "--kubeconfig="+c.Kubeconfig, "--authentication-kubeconfig="+c.Kubeconfig,
		"--authorization-kubeconfig="+c.Kubeconfig, "--kubelet-insecure-tls", "--kubelet-use-node-status-port",
		"--kubelet-client-certificate="+filepath.Join(c.plane.Dir, "client.crt"),
		"--kubelet-client-key="+filepath.Join(c.plane.Dir, "client.key"),
		"--kubelet-request-timeout=5s", "--kubelet-preferred-address-types=InternalIP", "--metric-resolution="+Resolution.String())
	return err
}

// StartPrometheus starts Prometheus, with the metrics of the kubelets, and kube-state-metrics, and returns the URL of Prometheus.
func (c *Cluster) StartPrometheus(ctx context.Context) (string, error) {
	var ports [3]int
	for i := range ports {
		port, err := subprocess.FreePort()
		if err != nil {
			return "", err
		}
		ports[i] = port
	}
	if _, err := c.StartServer("kube-state-metrics", c.Program("kube-state-metrics"), "--kubeconfig="+c.Kubeconfig, "--host=127.0.0.1",
		fmt.Sprintf("--port=%d", ports[1]), "--telemetry-host=127.0.0.1", fmt.Sprintf("--telemetry-port=%d", ports[2])); err != nil {
		return "", err
	}
	text, err := rendered("prometheus.yml", map[string]any{
		"Paths": []string{
			"/metrics/resource",
			"/metrics/cadvisor",
			"/metrics/probes",
		},
		"Dir":       c.plane.Dir,
		"Nodes":     c.Nodes,
		"StatePort": ports[1],
	})
	config := filepath.Join(c.Dir, "prometheus.yml")
	if err == nil {
		err = os.WriteFile(config, []byte(text), 0o600)
	}
	if err != nil {
		return "", err
	}
	if _, err := c.StartServer(
		"prometheus",
		"prometheus",
		"--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(c.Dir, "prometheus"),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", ports[0]),
	); err != nil {
		return "", err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	return url, AwaitHTTP(ctx, url+"/-/ready")
}

// AwaitHTTP waits until a URL responds with status 200.
func AwaitHTTP(ctx context.Context, url string) error {
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
}

// chartNamespace is the namespace of the release of the chart.
const chartNamespace = "plimsoll-system"

// ApplyChart applies the objects of the project's chart, with Helm values in YAML, but for its pods, which run as processes. project is the
// folder of the project.
func (c *Cluster) ApplyChart(ctx context.Context, project, values string) error {
	helm, err := program.BuildHelm(ctx, project, filepath.Join(c.Dir, "helm"))
	if err != nil {
		return err
	}
	file := filepath.Join(c.Dir, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o644); err != nil {
		return err
	}
	objects, err := helm.Template(ctx, "--values="+file)
	if err != nil {
		return err
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(chartNamespace)
	if err := c.Apply(ctx, []*unstructured.Unstructured{namespace}); err != nil {
		return err
	}
	// Types come before their objects, as with Helm.
	isType := func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace"
	}
	types, others := []*unstructured.Unstructured{}, []*unstructured.Unstructured{}
	for _, object := range objects {
		switch {
		case isType(object):
			types = append(types, object)
		case !slices.Contains([]string{"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "ResourceSlack"}, object.GetKind()):
			others = append(others, object)
		}
	}
	return c.Apply(ctx, append(types, others...))
}

// Token returns a token of a service account.
func (c *Cluster) Token(ctx context.Context, namespace, account string) (string, error) {
	accounts := c.Client.CoreV1().ServiceAccounts(namespace)
	token, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}

// ChartConfig returns a client configuration of the service account of a component of the chart, and writes it as a kubeconfig.
func (c *Cluster) ChartConfig(ctx context.Context, component string) (config *rest.Config, kubeconfig string, err error) {
	token, err := c.Token(ctx, chartNamespace, "plimsoll-"+component)
	if err != nil {
		return nil, "", err
	}
	config = &rest.Config{Host: c.Config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: c.Config.CAData}, BearerToken: token, QPS: -1}
	kubeconfig = filepath.Join(c.Dir, component+".kubeconfig")
	return config, kubeconfig, controlplane.WriteKubeconfig(kubeconfig, config)
}

// Scheduler is a running plimsoll-scheduler.
type Scheduler struct {
	*subprocess.Process
	// Address is the URL of its metrics and decisions.
	Address string
}

// StartScheduler starts a scheduler, such as Program("plimsoll-scheduler"), with the rights of the chart and the profiles of a scheduler
// configuration, in which KUBECONFIG is replaced by the path of its kubeconfig.
func (c *Cluster) StartScheduler(ctx context.Context, name, path, configuration string) (*Scheduler, error) {
	_, kubeconfig, err := c.ChartConfig(ctx, "scheduler")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(configuration, "KUBECONFIG", kubeconfig)), 0o600); err != nil {
		return nil, err
	}
	port, err := subprocess.FreePort()
	if err != nil {
		return nil, err
	}
	process, err := c.StartServer(name, path, "--config="+file, "--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--v=2")
	if err != nil {
		return nil, err
	}
	return &Scheduler{process, fmt.Sprintf("https://127.0.0.1:%d", port)}, nil
}
