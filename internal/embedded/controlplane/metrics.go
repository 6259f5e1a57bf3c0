package controlplane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// Usage is what a pod or a node uses, in millicores and bytes. Nodes have no namespace.
type Usage struct {
	Namespace, Name string
	CPU, Memory     int64
}

const (
	metricsGroup = "/apis/metrics.k8s.io/v1beta1"
	metricsKinds = `{"kind": "APIResourceList", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [
{"name": "pods", "kind": "PodMetrics", "namespaced": true, "verbs": ["list"]},
{"name": "nodes", "kind": "NodeMetrics", "namespaced": false, "verbs": ["list"]}]}`
	// apiService makes the API server forward requests for the metrics API to a port of this machine.
	apiService = `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
"spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
"insecureSkipTLSVerify": true, "service": {"namespace": "kube-system", "name": "metrics-server", "port": %d}}}`
)

// ServeMetrics serves the usage of nodes and of pods that have a node, as metrics-server does, until ctx ends.
func ServeMetrics(ctx context.Context, client kubernetes.Interface, nodes, pods func(context.Context) []Usage) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: metricsAPI(nodes, pods), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "metrics-server"}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []v1.ServicePort{{Port: int32(port)}},
	}}
	if _, err := client.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	return client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body(fmt.Appendf(nil, apiService, port)).Do(ctx).Error()
}

// metricsAPI serves the metrics API.
func metricsAPI(nodes, pods func(context.Context) []Usage) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(metricsGroup, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(metricsKinds))
	})
	mux.Handle(metricsGroup+"/nodes", metricsHandler(nodes))
	mux.Handle(metricsGroup+"/pods", metricsHandler(pods))
	mux.Handle(metricsGroup+"/namespaces/{namespace}/pods", metricsHandler(pods))
	return mux
}

// metricsHandler sends a list of usage, of one namespace if the path has it.
func metricsHandler(list func(context.Context) []Usage) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		items := []any{}
		namespace := r.PathValue("namespace") // empty for all
		for _, u := range list(r.Context()) {
			if namespace != "" && u.Namespace != namespace {
				continue
			}
			usage := v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(u.CPU, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(u.Memory, resource.BinarySI),
			}
			items = append(items, map[string]any{
				"metadata":  map[string]string{"namespace": u.Namespace, "name": u.Name},
				"timestamp": metav1.Now(), "window": "1m0s", "usage": usage,
				"containers": []any{map[string]any{"name": "main", "usage": usage}},
			})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items}) // an error is that the client has gone
	}
}
