package agent

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

var (
	karpenter       = schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	configMaps      = v1.SchemeGroupVersion.WithResource("configmaps")
	resourceQuotas  = v1.SchemeGroupVersion.WithResource("resourcequotas")
	nodePoolLabel   = "karpenter.sh/nodepool"
	nodeGroupLabels = []string{
		"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool",
		"kwok-nodegroup",
	}
)

// member reads slack policies, what autoscalers can add and what quotas leave from the API server of the cluster. Pools and quotas that
// cannot be read are left out: the kinds may not be installed, and the agent may not have the rights.
type member struct {
	client dynamic.Interface
	// forbidden reports whether the last list of slack policies was denied, which is logged once.
	forbidden atomic.Bool
}

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodepools;nodeclaims,verbs=list
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=cluster-autoscaler-status,verbs=get
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=list

// pools returns the pools of Karpenter and of Cluster Autoscaler. values returns the values of a label of the nodes.
func (m *member) pools(ctx context.Context, values func(label string) []string) []capacity.Pool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var out []capacity.Pool
	if list, err := m.client.Resource(karpenter.WithResource("nodepools")).List(ctx, metav1.ListOptions{ResourceVersion: "0"}); err == nil {
		boot := m.bootTimes(ctx)
		for i := range list.Items {
			out = append(out, karpenterPool(&list.Items[i], boot))
		}
	}
	status, err := m.client.Resource(configMaps).Namespace("kube-system").Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	if err == nil {
		text, _, _ := unstructured.NestedString(status.Object, "data", "status")
		out = append(out, autoscalerPools(text, values)...)
	}
	return out
}

// karpenterPool returns a NodePool.
func karpenterPool(pool *unstructured.Unstructured, boot map[string]int32) capacity.Pool {
	out := capacity.Pool{
		Name: pool.GetName(), Source: capacity.SourceKarpenter, Label: nodePoolLabel, Value: pool.GetName(), MaxNodes: -1, BootSeconds: -1,
		PricePerHour: pool.GetAnnotations()[v1alpha1.AnnotationPrice], Left: v1.ResourceList{},
	}
	if seconds, known := boot[pool.GetName()]; known {
		out.BootSeconds = seconds
	}
	limits, _, _ := unstructured.NestedMap(pool.Object, "spec", "limits")
	used, _, _ := unstructured.NestedMap(pool.Object, "status", "resources")
	for name, limit := range limits {
		left, ok := resources.QuantityOf(limit)
		if !ok {
			continue
		}
		if amount, ok := resources.QuantityOf(used[name]); ok {
			left.Sub(amount)
		}
		if name == "nodes" {
			out.MaxNodes = int32(min(max(left.Value(), 0), 100_000))
			continue
		}
		out.Left[v1.ResourceName(name)] = left
	}
	return out
}

// bootTimes returns the median time in seconds from the creation of the NodeClaims of a pool until their nodes are initialized.
func (m *member) bootTimes(ctx context.Context) map[string]int32 {
	list, err := m.client.Resource(karpenter.WithResource("nodeclaims")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	times := map[string][]int32{}
	for i := range list.Items {
		claim := &list.Items[i]
		conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
		for _, c := range conditions {
			condition, _ := c.(map[string]any)
			text, _ := condition["lastTransitionTime"].(string)
			at, err := time.Parse(time.RFC3339, text)
			if condition["type"] == "Initialized" && condition["status"] == "True" && err == nil {
				pool := claim.GetLabels()[nodePoolLabel]
				times[pool] = append(times[pool], int32(max(at.Sub(claim.GetCreationTimestamp().Time)/time.Second, 0)))
			}
		}
	}
	out := make(map[string]int32, len(times))
	for pool, list := range times {
		slices.Sort(list)
		out[pool] = list[len(list)/2]
	}
	return out
}

// autoscalerStatus is the status that Cluster Autoscaler writes since 1.30.
type autoscalerStatus struct {
	NodeGroups []struct {
		Name   string `json:"name"`
		Health struct {
			CloudProviderTarget int64 `json:"cloudProviderTarget"`
			MaxSize             int64 `json:"maxSize"`
		} `json:"health"`
		ScaleUp struct {
			Status string `json:"status"`
		} `json:"scaleUp"`
	} `json:"nodeGroups"`
}

// autoscalerPools returns the node groups that can be extended and whose nodes are known: the name of the group contains the value of a
// label that cloud providers set on the nodes. Other groups are left out.
func autoscalerPools(text string, values func(label string) []string) (out []capacity.Pool) {
	var status autoscalerStatus
	if len(text) > maxStatusLength || yaml.Unmarshal([]byte(text), &status) != nil {
		return nil
	}
	known := map[string][]string{}
	for _, label := range nodeGroupLabels {
		known[label] = values(label)
	}
	for _, group := range status.NodeGroups {
		left := group.Health.MaxSize - group.Health.CloudProviderTarget
		if left <= 0 || group.ScaleUp.Status == "Backoff" {
			continue
		}
		pool := capacity.Pool{
			Name: group.Name, Source: capacity.SourceClusterAutoscaler, MaxNodes: int32(min(left, 100_000)), BootSeconds: -1,
		}
		for _, label := range nodeGroupLabels {
			for _, value := range known[label] {
				if len(value) > len(pool.Value) && containsWord(group.Name, value) {
					pool.Label, pool.Value = label, value
				}
			}
		}
		if pool.Value != "" {
			out = append(out, pool)
		}
	}
	return out
}

// maxStatusLength is the maximum length of the status of Cluster Autoscaler, which a ConfigMap can have.
const maxStatusLength = 1 << 20

// containsWord reports whether a name contains a word that no letter or digit precedes or follows.
func containsWord(name, word string) bool {
	return regexp.MustCompile(`(^|[^\pL\pN])` + regexp.QuoteMeta(word) + `($|[^\pL\pN])`).MatchString(name)
}

// labelValues returns the values of a label of the nodes, sorted.
func (o *observer) labelValues(label string) []string {
	values := map[string]bool{}
	for _, node := range o.sortedNodes() {
		values[node.Label(label)] = true
	}
	delete(values, "")
	return slices.Sorted(maps.Keys(values))
}

// quotas returns what the quotas of namespaces leave: of several quotas the least. Quotas with scopes count for all pods.
func (m *member) quotas(ctx context.Context, namespaces []string) (out []v1alpha1.Quota) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, namespace := range namespaces {
		list, err := m.client.Resource(resourceQuotas).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue
		}
		left := v1.ResourceList{}
		for i := range list.Items {
			var quota v1.ResourceQuota
			if runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &quota) == nil {
				addLeft(left, &quota)
			}
		}
		if len(left) > 0 {
			out = append(out, v1alpha1.Quota{Namespace: namespace, Left: left})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Quota) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}

// addLeft lowers the amounts that are left to those of a quota.
func addLeft(left v1.ResourceList, quota *v1.ResourceQuota) {
	for name, hard := range quota.Status.Hard {
		resource := v1.ResourceName(strings.TrimPrefix(string(name), "requests."))
		if resource == name && name != v1.ResourcePods && name != v1.ResourceCPU && name != v1.ResourceMemory {
			continue // limits, and numbers of objects
		}
		remaining := hard.DeepCopy()
		remaining.Sub(quota.Status.Used[name])
		if remaining.Sign() < 0 {
			remaining.Set(0)
		}
		if least, known := left[resource]; !known || remaining.Cmp(least) < 0 {
			left[resource] = remaining
		}
	}
}
