package fleet

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
)

// nodePool is a number of nodes and their CPUs. Each node has one to three pods of 2 CPUs.
type nodePool [2]int

// members are the nodes of the clusters of examples/placement/7-fit.
var members = map[string][]nodePool{
	"cluster1": {{20, 16}}, "cluster2": {{12, 24}}, "cluster3": {{2, 48}},
	"cluster4": {{40, 8}}, "cluster5": {{4, 8}}, "cluster6": {{6, 8}},
}

// publish writes the ClusterCapacity of a cluster with generated nodes, as its agent would.
func (h *hub) publish(ctx context.Context, cluster string, pools []nodePool) error {
	in := &summarize.Input{Cluster: cluster, Now: time.Now(), Pods: summarize.Pods{}}
	for _, pool := range pools {
		for i := range pool[0] {
			name := fmt.Sprintf("node-%d-%d", pool[1], i)
			in.Nodes = append(in.Nodes, summarize.NewNode(demo.Node{Name: name, CPU: fmt.Sprint(pool[1])}.Object()))
			for k := range 1 + i%3 {
				in.Pods.Set(summarize.NewPod(demo.Pod{Name: fmt.Sprint(name, "-", k), Node: name, Request: "2"}.Object("")))
			}
		}
	}
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	if err := h.API.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	object := &v1alpha1.ClusterCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, h.API, object, func() error {
		object.Status = *summarize.Summarize(in)
		return nil
	})
	return err
}

// publishAll writes the ClusterCapacities of all clusters.
func (h *hub) publishAll(ctx context.Context) error {
	for cluster, pools := range members {
		if err := h.publish(ctx, cluster, pools); err != nil {
			return fmt.Errorf("capacity of %s: %w", cluster, err)
		}
	}
	return nil
}

// renewInterval is the time after which capacities are written again, as agents do. Capacities that are older than 15 minutes do not count.
const renewInterval = 5 * time.Minute

// renew writes the ClusterCapacities of all clusters again until ctx ends. It is first due long after the scenario.
func (h *hub) renew(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(renewInterval):
		}
		if err := h.publishAll(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Renewing the capacities of clusters failed, the next attempt is in 5 minutes")
		}
	}
}
