package agent

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	slackv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

var (
	slackPolicies   = slackv1alpha1.GroupVersion.WithResource("resourceslacks")
	nodePools       = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	nodeClaims      = nodePools.GroupVersion().WithResource("nodeclaims")
	configMaps      = v1.SchemeGroupVersion.WithResource("configmaps")
	resourceQuotas  = v1.SchemeGroupVersion.WithResource("resourcequotas")
	nodePoolLabel   = "karpenter.sh/nodepool"
	nodeGroupLabels = []string{
		"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool",
		"kwok-nodegroup",
	}
)

// member reads slack policies, what autoscalers can add and what quotas leave from the API server of the cluster. Pools that cannot be read
// are left out: the kinds may not be installed, and the agent may not have the rights.
type member struct {
	client dynamic.Interface
	// forbidden reports whether the last list of slack policies was denied, which is logged once.
	forbidden atomic.Bool
}

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodepools;nodeclaims,verbs=list
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=cluster-autoscaler-status,verbs=get
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=list

// list lists the objects of a namespace, "" for all, into a list.
func (m *member) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := m.client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(object unstructured.Unstructured) bool {
		err := resources.CheckObject(object.Object)
		if err != nil {
			klog.ErrorS(err, "An invalid object is left out", "resource", resource.Resource, "object", klog.KObj(&object))
		}
		return err != nil
	})
	return runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), into)
}

// policies returns the slack of all policies. It returns an error if the API server does not answer.
func (m *member) policies(ctx context.Context) (out []slackAmounts, err error) {
	var list slackv1alpha1.ResourceSlackList
	err = m.list(ctx, slackPolicies, "", &list)
	switch {
	case apierrors.IsForbidden(err):
		if !m.forbidden.Swap(true) {
			klog.ErrorS(err, "Listing slack policies is forbidden, the slack scores are omitted: "+
				"apply examples/placement/agent-member-rbac.yaml")
		}
		return nil, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, &reportError{reasonMember, fmt.Errorf("listing slack policies of the cluster failed, nothing is reported: %w", err)}
	}
	m.forbidden.Store(false)
	for i := range list.Items {
		status := &list.Items[i].Status
		out = append(out, slackAmounts{
			Available: resources.CPUAndMemory(status.Available), Target: resources.CPUAndMemory(status.Target), Total: status.Total,
		})
	}
	return out, nil
}

// pools returns the pools of Karpenter and of Cluster Autoscaler. counts returns the number of nodes with each value of a
// label.
func (m *member) pools(ctx context.Context, counts func(label string) map[string]int64) (out []summarize.Pool) {
	var pools karpenterList
	if m.list(ctx, nodePools, "", &pools) == nil {
		boot := m.bootTimes(ctx)
		for i := range pools.Items {
			if pool := &pools.Items[i]; pool.canGrow() {
				out = append(out, pool.pool(boot))
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	status, err := m.client.Resource(configMaps).Namespace("kube-system").Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	if err == nil {
		text, _, _ := unstructured.NestedString(status.Object, "data", "status")
		out = append(out, autoscalerPools(text, counts)...)
	}
	return out
}

// karpenterList is a list of NodePools or NodeClaims.
type karpenterList struct {
	Items []karpenterObject `json:"items"`
}

// karpenterObject is a NodePool or a NodeClaim.
type karpenterObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// Replicas is set for a NodePool that does not grow with the pods.
		Replicas *int64 `json:"replicas"`
		// Limits are the limits of a NodePool.
		Limits map[string]any `json:"limits"`
	} `json:"spec"`
	Status struct {
		// Resources are the resources of the nodes of a NodePool.
		Resources  map[string]any     `json:"resources"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// canGrow reports whether Karpenter adds nodes to a NodePool for pods.
func (o *karpenterObject) canGrow() bool {
	return o.DeletionTimestamp == nil && o.Spec.Replicas == nil && !meta.IsStatusConditionFalse(o.Status.Conditions, "Ready")
}

// pool returns a NodePool. A limit that is not a credible quantity leaves nothing.
func (o *karpenterObject) pool(boot map[string]int32) summarize.Pool {
	out := summarize.Pool{
		Name: o.Name, Source: summarize.SourceKarpenter, Label: nodePoolLabel, Value: o.Name, MaxNodes: -1, BootSeconds: -1,
		PricePerHour: o.Annotations[v1alpha1.AnnotationPrice], Left: v1.ResourceList{},
	}
	if seconds, known := boot[o.Name]; known {
		out.BootSeconds = seconds
	}
	for name, limit := range o.Spec.Limits {
		left, _ := resources.QuantityOf(limit)
		used, _ := resources.QuantityOf(o.Status.Resources[name])
		left.Sub(used)
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
	var claims karpenterList
	_ = m.list(ctx, nodeClaims, "", &claims) // without NodeClaims, boot times are unknown
	times := map[string][]int32{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if c := meta.FindStatusCondition(claim.Status.Conditions, "Initialized"); c != nil && c.Status == metav1.ConditionTrue {
			pool, seconds := claim.Labels[nodePoolLabel], c.LastTransitionTime.Sub(claim.CreationTimestamp.Time)/time.Second
			times[pool] = append(times[pool], int32(max(seconds, 0)))
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
	NodeGroups []nodeGroupStatus `json:"nodeGroups"`
}

// nodeGroupStatus is the status of a node group.
type nodeGroupStatus struct {
	Name   string `json:"name"`
	Health struct {
		Status              string `json:"status"`
		CloudProviderTarget int64  `json:"cloudProviderTarget"`
		MaxSize             int64  `json:"maxSize"`
		NodeCounts          struct {
			Registered struct {
				Total *int64 `json:"total"`
			} `json:"registered"`
		} `json:"nodeCounts"`
	} `json:"health"`
	ScaleUp struct {
		Status string `json:"status"`
	} `json:"scaleUp"`
}

// size returns the number of registered nodes, the desired number if it is unknown.
func (g *nodeGroupStatus) size() int64 {
	return ptr.Deref(g.Health.NodeCounts.Registered.Total, g.Health.CloudProviderTarget)
}

// left returns how many nodes can be added, 0 for a group without nodes and for one that is not healthy.
func (g *nodeGroupStatus) left() int64 {
	if g.ScaleUp.Status == "Backoff" || g.Health.Status == "Unhealthy" || g.size() == 0 {
		return 0
	}
	return g.Health.MaxSize - g.Health.CloudProviderTarget
}

// autoscalerPools returns the node groups that can be extended and whose nodes are known: the name of the group contains the value of a
// label that cloud providers set on the nodes, and the groups of a value have no more nodes than have the label. Other groups are left out.
// counts returns the number of nodes with each value of a label.
func autoscalerPools(text string, counts func(label string) map[string]int64) (out []summarize.Pool) {
	var status autoscalerStatus
	if len(text) > maxStatusLength || yaml.Unmarshal([]byte(text), &status) != nil {
		return nil
	}
	type labelValue struct{ label, value string }
	known, members := map[labelValue]int64{}, map[labelValue]int64{}
	for _, label := range nodeGroupLabels {
		for value, count := range counts(label) {
			known[labelValue{label, value}] = count
		}
	}
	found := make([]labelValue, len(status.NodeGroups))
	for i, group := range status.NodeGroups {
		for next := range known {
			isLonger := cmp.Or(cmp.Compare(len(next.value), len(found[i].value)), cmp.Compare(found[i].label, next.label),
				cmp.Compare(found[i].value, next.value)) > 0
			if isLonger && containsWord(group.Name, next.value) {
				found[i] = next
			}
		}
		members[found[i]] += group.size()
	}
	for i := range status.NodeGroups {
		group, of := &status.NodeGroups[i], found[i]
		if left := group.left(); left > 0 && of.value != "" && members[of] <= known[of] {
			out = append(out, summarize.Pool{
				Name: group.Name, Source: summarize.SourceClusterAutoscaler, Label: of.label, Value: of.value, Zone: zoneOf(group.Name),
				MaxNodes: int32(min(left, 100_000)), BootSeconds: -1,
			})
		}
	}
	return out
}

// zoneOf returns the zone in the name of a group, "" if the name has none.
func zoneOf(group string) string {
	if zone := zoneInName.FindStringSubmatch(group); zone != nil {
		return zone[1]
	}
	return ""
}

// zoneInName matches the zone in the name of a group of Google Cloud.
var zoneInName = regexp.MustCompile(`/zones/([^/]+)/`)

// maxStatusLength is the maximum length of the status of Cluster Autoscaler, which a ConfigMap can have.
const maxStatusLength = 1 << 20

// containsWord reports whether a name contains a word that no letter or digit precedes or follows.
func containsWord(name, word string) bool {
	return regexp.MustCompile(`(^|[^\pL\pN])` + regexp.QuoteMeta(word) + `($|[^\pL\pN])`).MatchString(name)
}

// labelCounts returns the number of nodes with each value of a label.
func (o *observer) labelCounts(label string) map[string]int64 {
	counts := map[string]int64{}
	for _, node := range o.sortedNodes() {
		counts[node.Label(label)]++
	}
	delete(counts, "")
	return counts
}

// quotas returns what the quotas of namespaces leave: of several quotas the least. Quotas with scopes count for all pods. It returns an
// error if quotas cannot be read: without them, more pods would fit.
func (m *member) quotas(ctx context.Context, namespaces []string) (out []v1alpha1.Quota, err error) {
	for _, namespace := range slices.Sorted(slices.Values(namespaces)) {
		var list v1.ResourceQuotaList
		if err := m.list(ctx, resourceQuotas, namespace, &list); err != nil {
			return nil, &reportError{reasonMember, fmt.Errorf(
				"listing the quotas of namespace %s of the cluster failed, its capacity is not reported: %w", namespace, err)}
		}
		left := v1.ResourceList{}
		for i := range list.Items {
			addLeft(left, &list.Items[i])
		}
		if len(left) > 0 {
			out = append(out, v1alpha1.Quota{Namespace: namespace, Left: left})
		}
	}
	return out, nil
}

// addLeft lowers the amounts that are left to those of a quota.
func addLeft(left v1.ResourceList, quota *v1.ResourceQuota) {
	for name, hard := range quota.Status.Hard {
		resource := requested(name)
		if resource == "" {
			continue
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

// requested returns the resource of pods whose requests a resource of a quota bounds, "" for limits and numbers of other objects.
func requested(name v1.ResourceName) v1.ResourceName {
	if resource, isRequest := strings.CutPrefix(string(name), "requests."); isRequest {
		return v1.ResourceName(resource)
	}
	switch {
	case name == "count/pods":
		return v1.ResourcePods
	case resources.NewResource(name).Index() != resources.Extended, strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
		return name
	}
	return ""
}
