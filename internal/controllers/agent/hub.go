package agent

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/clusterscore"
)

const (
	// ScoreName is the name of the AddOnPlacementScore in the cluster's namespace.
	ScoreName = "plimsoll"
	// fieldOwner owns the fields that the agent writes.
	fieldOwner = "plimsoll-agent"
	// requestTimeout bounds a request.
	requestTimeout = 8 * time.Second
	scoreKind      = "AddOnPlacementScore"
	clusterKind    = "ManagedCluster"
)

var (
	scoreVersion    = schema.GroupVersion{Group: clusterv1alpha1.GroupName, Version: "v1alpha1"}
	scoreResource   = scoreVersion.WithResource("addonplacementscores")
	clusterVersion  = schema.GroupVersion{Group: clusterv1.GroupName, Version: "v1"}
	clusterResource = clusterVersion.WithResource("managedclusters")
)

// ReportResources says when allocatable and capacity are written into the
// ManagedCluster's status.
type ReportResources string

const (
	// Auto: if nobody else has written them.
	Auto ReportResources = "auto"
	// Always: whoever else writes them.
	Always ReportResources = "always"
	// Never: somebody else does.
	Never ReportResources = "never"
)

// Hub is access to a hub by a kubeconfig, which is read again as it changes. It
// is not safe for concurrent use.
type Hub struct {
	path, userAgent string
	// raw is the kubeconfig that the client is made from.
	raw    []byte
	client dynamic.Interface
	// connections are those of the client.
	connections *connrotation.Dialer
}

// NewHub returns access to a hub. An error is one of the file; the hub itself is
// not asked yet.
func NewHub(path, userAgent string) (*Hub, error) {
	h := &Hub{path: path, userAgent: userAgent}
	_, err := h.connect()
	return h, err
}

// connect returns a client by the kubeconfig as it is now. Files that it names
// (tokens, certificates) are read by the client itself as they change.
func (h *Hub) connect() (dynamic.Interface, error) {
	raw, err := os.ReadFile(h.path)
	if err != nil {
		return nil, err
	}
	if h.client != nil && bytes.Equal(raw, h.raw) {
		return h.client, nil
	}
	config, err := h.config()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.path, err)
	}
	connections := connrotation.NewDialer((&net.Dialer{Timeout: requestTimeout, KeepAlive: 15 * time.Second}).DialContext)
	config.Dial = connections.DialContext
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.path, err)
	}
	h.disconnect()
	h.raw, h.client, h.connections = raw, client, connections
	return client, nil
}

// config returns what the kubeconfig says; nothing takes its place if it is
// empty.
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
	config.UserAgent, config.Timeout = h.userAgent, requestTimeout
	return config, nil
}

// disconnect makes the next request use a new connection: the old one may lead
// nowhere, or have been made with credentials that are no longer good. Closing
// those that are idle is not enough: one over which a request has just been given
// up is not idle yet.
func (h *Hub) disconnect() {
	if h.connections != nil {
		h.connections.CloseAll()
	}
}

// of returns what takes the reports of a cluster.
func (h *Hub) of(cluster string) receiver { return &place{h, cluster} }

// place is where the reports of one cluster go on a hub.
type place struct {
	hub     *Hub
	cluster string
}

// scores makes the cluster's AddOnPlacementScore have these scores.
func (p *place) scores(ctx context.Context, scores []clusterscore.Score, validUntil time.Time) error {
	client, err := p.hub.connect()
	if err != nil {
		return p.explain(err, scoreKind)
	}
	items := make([]any, len(scores))
	for i, score := range scores {
		items[i] = map[string]any{"name": score.Name, "value": int64(score.Value)}
	}
	object := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": scoreVersion.String(),
			"kind":       scoreKind,
			"metadata":   map[string]any{"name": ScoreName, "namespace": p.cluster},
		}}
	}
	status := object()
	status.Object["status"] = map[string]any{"scores": items, "validUntil": validUntil.UTC().Format(time.RFC3339)}
	in, options := client.Resource(scoreResource).Namespace(p.cluster), metav1.ApplyOptions{FieldManager: fieldOwner, Force: true}
	_, err = in.ApplyStatus(ctx, ScoreName, status, options)
	if apierrors.IsNotFound(err) {
		if _, err = in.Apply(ctx, ScoreName, object(), options); err == nil {
			_, err = in.ApplyStatus(ctx, ScoreName, status, options)
		}
	}
	return p.explain(err, scoreKind)
}

// resources makes the cluster's ManagedCluster have these amounts. Unless forced,
// amounts that somebody else has written are left alone: that is an ownedError.
// Who has written what, the hub keeps with the object.
func (p *place) resources(ctx context.Context, capacity, allocatable v1.ResourceList, force bool) error {
	client, err := p.hub.connect()
	if err != nil {
		return p.explain(err, clusterKind)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterVersion.String(),
		"kind":       clusterKind,
		"metadata":   map[string]any{"name": p.cluster},
		"status":     map[string]any{"capacity": written(capacity), "allocatable": written(allocatable)},
	}}
	_, err = client.Resource(clusterResource).ApplyStatus(ctx, p.cluster, object, metav1.ApplyOptions{FieldManager: fieldOwner, Force: force})
	if apierrors.IsConflict(err) && !force {
		return &ownedError{err}
	}
	return p.explain(err, clusterKind)
}

// written returns a list as it stands in an object.
func written(list v1.ResourceList) map[string]any {
	out := make(map[string]any, len(list))
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}
