package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
)

// usedCPUs is what the pods of the playground use by the start of their name, in millicores. The sums are the loads of playgroundLoad.
var usedCPUs = map[string]int{
	"batch-1": 10500, "batch-2": 8900, "cache-": 800, "job-": 600, "log-": 1500, "report-": 400, "web-1": 3400, "web-2": 2200, "web-3": 800,
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

// ServeUsage serves the usage of nodes and pods as metrics-server does, until ctx ends.
func (d *Demo) ServeUsage(ctx context.Context) error {
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
	server := &http.Server{Handler: http.HandlerFunc(d.answer), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "metrics-server"}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []v1.ServicePort{{Port: int32(port)}},
	}}
	if _, err := d.env.Client.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	return d.env.Client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body(fmt.Appendf(nil, apiService, port)).Do(ctx).Error()
}

// answer sends the metrics of the nodes or of the pods that have a node, or the kinds of metrics.
func (d *Demo) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	items := []any{}
	add := func(namespace, name string, cpu int) {
		usage := map[string]string{"cpu": fmt.Sprintf("%dm", cpu), "memory": "512Mi"}
		items = append(items, map[string]any{
			"metadata":  map[string]string{"namespace": namespace, "name": name},
			"timestamp": metav1.Now(), "window": "1m0s", "usage": usage,
			"containers": []any{map[string]any{"name": "main", "usage": usage}},
		})
	}
	switch r.URL.Path {
	case metricsGroup + "/pods":
		pods, err := d.env.Client.CoreV1().Pods("").List(r.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		for i := 0; err == nil && i < len(pods.Items); i++ {
			cpu := 100
			for prefix, used := range usedCPUs {
				if strings.HasPrefix(pods.Items[i].Name, prefix) {
					cpu = used
				}
			}
			add(pods.Items[i].Namespace, pods.Items[i].Name, cpu)
		}
	case metricsGroup + "/nodes":
		for _, n := range playground.Nodes {
			cpu := n.Object().Status.Capacity.Cpu().MilliValue()
			add("", n.Name, int(playgroundLoad[n.Name].CPU.Mean*float64(cpu)))
		}
	case metricsGroup:
		_, _ = w.Write([]byte(metricsKinds))
		return
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"items": items}) // an error is that the client has gone
}
