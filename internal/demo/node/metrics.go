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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// usedCPUs is what the pods of the playground use by the start of their name. The sums are the loads of playgroundLoad.
var usedCPUs = map[string]string{
	"batch-1": "10500m", "batch-2": "8900m", "cache-": "800m", "job-": "600m", "log-": "1500m", "report-": "400m", "web-1": "3400m",
	"web-2": "2200m", "web-3": "800m",
}

// apiService makes the API server forward requests for the metrics API to a port of this machine.
const apiService = `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
"spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
"insecureSkipTLSVerify": true, "service": {"namespace": "kube-system", "name": "metrics-server", "port": %d}}}`

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
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1", answer(func(context.Context) (any, error) {
		return metav1.APIResourceList{GroupVersion: metrics.SchemeGroupVersion.String(), APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"list"}},
			{Name: "nodes", Kind: "NodeMetrics", Verbs: metav1.Verbs{"list"}},
		}}, nil
	}))
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1/pods", answer(d.podUsage))
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1/nodes", answer(d.nodeUsage))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
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

// answer returns a handler that writes a value as JSON.
func answer(value func(context.Context) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := value(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client has gone
	}
}

// nodeUsage returns the metrics of the nodes.
func (d *Demo) nodeUsage(ctx context.Context) (any, error) {
	nodes, err := d.env.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	list := metrics.NodeMetricsList{Items: []metrics.NodeMetrics{}}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		cpu := playgroundLoad[n.Name].CPU.Mean * float64(n.Status.Capacity.Cpu().MilliValue())
		list.Items = append(list.Items, metrics.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Timestamp: metav1.Now(), Window: metav1.Duration{Duration: time.Minute},
			Usage: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(cpu), resource.DecimalSI), v1.ResourceMemory: usedMemory},
		})
	}
	return list, nil
}

// usedMemory is what each pod and, so that it counts as measured, each node uses.
var usedMemory = resource.MustParse("512Mi")

// podUsage returns the metrics of the pods that have a node.
func (d *Demo) podUsage(ctx context.Context) (any, error) {
	pods, err := d.env.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return nil, err
	}
	list := metrics.PodMetricsList{Items: []metrics.PodMetrics{}}
	for i := range pods.Items {
		cpu := "100m"
		for prefix, used := range usedCPUs {
			if strings.HasPrefix(pods.Items[i].Name, prefix) {
				cpu = used
			}
		}
		used := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: usedMemory}
		list.Items = append(list.Items, metrics.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: pods.Items[i].Namespace, Name: pods.Items[i].Name},
			Timestamp:  metav1.Now(), Window: metav1.Duration{Duration: time.Minute},
			Containers: []metrics.ContainerMetrics{{Name: "main", Usage: used}},
		})
	}
	return list, nil
}
