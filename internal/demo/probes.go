package demo

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// probeKey is the taint of nodes that are probes, and the label of clusters that
// are probed.
const probeKey = "plimsoll.dev/probe"

// probe settles with a scheduler in another process: it hears of the nodes in
// the order of their changes, and so of the pods. A pod that comes last, for a
// node that comes last, is bound when it has heard of all others. No other pod
// may go to that node, and both are gone afterwards. Nodes are never called alike:
// the pod might be bound to one that was there before.
func (c *cluster) probe(ctx context.Context) error {
	c.probes++
	name := fmt.Sprintf("probe-%d", c.probes)
	node := Node{Name: name, CPU: "1"}.object()
	node.Spec.Taints = []v1.Taint{{Key: probeKey, Effect: v1.TaintEffectNoSchedule}}
	if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := Pod{Name: name}.object(DefaultProfile)
	pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: name}
	pod.Spec.Tolerations = []v1.Toleration{{Key: probeKey, Operator: v1.TolerationOpExists}}
	if _, err := c.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := c.await(ctx, "the scheduler to bind the last pod", func(ctx context.Context) (bool, error) {
		pod, err := c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", err
	})
	if err != nil {
		return err
	}
	if err := c.deletePod(ctx, name); err != nil {
		return err
	}
	return c.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}

// probe settles with a placement controller in another process: all
// clusters are given a label, of which it hears after what has changed of them
// before. A placement for clusters with that label has all of them then; it is
// gone afterwards.
func (h *hub) probe(ctx context.Context) error {
	h.probes++
	value := fmt.Sprint(h.probes)
	var clusters clusterv1.ManagedClusterList
	if err := h.api.List(ctx, &clusters); err != nil {
		return err
	}
	var all []string
	for i := range clusters.Items {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, probeKey, value)
		if err := h.api.Patch(ctx, &clusters.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		all = append(all, clusters.Items[i].Name)
	}
	slices.Sort(all)
	probe := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "probe-" + value, Namespace: team}}
	probe.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{}}
	probe.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{probeKey: value}
	if err := h.api.Create(ctx, probe); err != nil {
		return err
	}
	err := h.await(ctx, "the placement controller to choose all clusters", func(ctx context.Context) (bool, error) {
		chosen, err := h.chosen(ctx, probe.Name)
		return slices.Equal(chosen, all), err
	})
	if err != nil {
		return err
	}
	return h.remove(ctx, []string{probe.Name})
}
