package agent

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/files"
)

const (
	// scoreName is the name of the AddOnPlacementScore in the cluster's namespace.
	scoreName = "plimsoll"
	// fieldOwner owns the fields that the agent writes.
	fieldOwner = "plimsoll-agent"
	// requestTimeout limits the duration of a request.
	requestTimeout = 8 * time.Second
	scoreKind      = "AddOnPlacementScore"
	clusterKind    = "ManagedCluster"
)

var (
	scoreVersion    = schema.GroupVersion{Group: clusterv1alpha1.GroupName, Version: "v1alpha1"}
	scoreResource   = scoreVersion.WithResource("addonplacementscores")
	clusterVersion  = schema.GroupVersion{Group: clusterv1.GroupName, Version: "v1"}
	clusterResource = clusterVersion.WithResource("managedclusters")
	applyOptions    = metav1.ApplyOptions{FieldManager: fieldOwner, Force: true}
)

// ReportResources states when allocatable and capacity are written to the status of the
// ManagedCluster.
type ReportResources string

const (
	// Auto writes them unless another client has.
	Auto ReportResources = "auto"
	// Always writes them even if another client has.
	Always ReportResources = "always"
	// Never does not write them.
	Never ReportResources = "never"
)

// Hub writes the objects of one cluster on a hub, which it accesses with a kubeconfig file. The file is read again
// when it changes. It is safe for concurrent use.
type Hub struct {
	// cluster is the name of the cluster, and of its namespace, on the hub.
	cluster         string
	path, userAgent string
	// wrap wraps the transport of the client.
	wrap transport.WrapperFunc
	// connections are the connections of the client. To close idle ones would not be sufficient after a failure: a connection whose
	// request has just timed out is not idle yet.
	connections *connrotation.Dialer

	mu sync.Mutex // of the fields that follow
	// raw is the kubeconfig of the client.
	raw    []byte
	client dynamic.Interface
}

// NewHub returns the hub of a kubeconfig file, accessed through the transport that wrap returns, to report a cluster
// to. It returns an error if the file is invalid, and does not connect to the hub.
func NewHub(cluster, path, userAgent string, wrap transport.WrapperFunc) (*Hub, error) {
	dialer := &net.Dialer{Timeout: requestTimeout, KeepAlive: 15 * time.Second}
	h := &Hub{cluster: cluster, path: path, userAgent: userAgent, wrap: wrap, connections: connrotation.NewDialer(dialer.DialContext)}
	_, err := h.connect()
	return h, err
}

// connect returns a client for the current kubeconfig. The client itself reads files that the
// kubeconfig refers to (tokens, certificates) when they change.
func (h *Hub) connect() (dynamic.Interface, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	raw, err := files.Read(h.path, files.MaxSecret)
	if err != nil {
		return nil, err
	}
	if h.client != nil && bytes.Equal(raw, h.raw) {
		return h.client, nil
	}
	config, err := h.config()
	if err != nil {
		return nil, &reportError{reasonKubeconfig, fmt.Errorf("%s: %w", h.path, err)}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, &reportError{reasonKubeconfig, fmt.Errorf("%s: %w", h.path, err)}
	}
	h.connections.CloseAll()
	h.raw, h.client = raw, client
	return client, nil
}

// config returns the configuration of the kubeconfig, without defaults for an empty file.
func (h *Hub) config() (*rest.Config, error) {
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: h.path}
	kubeconfig, err := rules.Load()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.Timeout, config.Dial = h.userAgent, requestTimeout, h.connections.DialContext
	config.Wrap(h.wrap)
	return config, nil
}

// write sends a request with an object of a kind that has a status, in the namespace of the cluster unless it is the ManagedCluster.
func (h *Hub) write(
	version schema.GroupVersion, kind, name string, status any, request func(dynamic.Interface, *unstructured.Unstructured) error,
) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(version.WithKind(kind))
	object.SetName(name)
	if kind != clusterKind {
		object.SetNamespace(h.cluster)
	}
	client, err := h.connect()
	if err == nil {
		object.Object["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	}
	if err == nil {
		err = request(client, object)
	}
	return h.explain(err, kind)
}

// writeScores writes the scores to the AddOnPlacementScore of the cluster.
func (h *Hub) writeScores(ctx context.Context, scores []namedScore, validUntil time.Time) error {
	status := &clusterv1alpha1.AddOnPlacementScoreStatus{Scores: scores, ValidUntil: new(metav1.NewTime(validUntil))}
	return h.write(scoreVersion, scoreKind, scoreName, status, func(hub dynamic.Interface, object *unstructured.Unstructured) error {
		client := hub.Resource(scoreResource).Namespace(h.cluster)
		_, err := client.ApplyStatus(ctx, scoreName, object, applyOptions)
		if apierrors.IsNotFound(err) {
			if _, err = client.Apply(ctx, scoreName, object, applyOptions); err == nil { // without the status
				_, err = client.ApplyStatus(ctx, scoreName, object, applyOptions)
			}
		}
		return err
	})
}

// writeCapacity writes the ClusterCapacity of the cluster.
func (h *Hub) writeCapacity(ctx context.Context, status *v1alpha1.ClusterCapacityStatus) error {
	version := v1alpha1.GroupVersion
	return h.write(version, v1alpha1.Kind, v1alpha1.Name, status, func(hub dynamic.Interface, object *unstructured.Unstructured) error {
		_, err := hub.Resource(version.WithResource(v1alpha1.Resource)).Namespace(h.cluster).Apply(ctx, v1alpha1.Name, object, applyOptions)
		return err
	})
}

// writeResources writes the amounts to the status of the ManagedCluster. Unless force is set, it
// returns a conflict if another field manager has written them.
func (h *Hub) writeResources(ctx context.Context, capacity, allocatable v1.ResourceList, force bool) error {
	status := &struct {
		Capacity    v1.ResourceList `json:"capacity"`
		Allocatable v1.ResourceList `json:"allocatable"`
	}{capacity, allocatable}
	return h.write(clusterVersion, clusterKind, h.cluster, status, func(hub dynamic.Interface, object *unstructured.Unstructured) error {
		options := metav1.ApplyOptions{FieldManager: fieldOwner, Force: force}
		_, err := hub.Resource(clusterResource).ApplyStatus(ctx, h.cluster, object, options)
		return err
	})
}
