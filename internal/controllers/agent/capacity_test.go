package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestCapacityReports checks when the capacity is written: at the start, within 10 s after a change, and every 5 minutes.
func TestCapacityReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, hub := newAgent(Never)
		report := func(after time.Duration) []string {
			<-time.After(after)
			must.Succeed(t, a.reportCapacity(t.Context()))
			received := hub.received
			hub.received = nil
			return received
		}
		written := []string{capacityv1alpha1.Kind}
		for _, step := range []struct {
			name   string
			change func()
			after  time.Duration
			want   []string
		}{
			{"start", func() {}, 0, written},
			{"no change", func() {}, 10 * time.Second, nil},
			{"a pod", func() { a.observer.set(pod("p", "n")) }, 10 * time.Second, written},
			{"5 minutes later", func() {}, capacityResync, written},
		} {
			step.change()
			if got := report(step.after); !slices.Equal(got, step.want) {
				t.Errorf("%s: got %v, want %v", step.name, got, step.want)
			}
		}
	})
}

// TestCapacityInterval checks that a capacity that changes all the time is written at most every 10 s.
func TestCapacityInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, hub := newAgent(Never)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { a.runCapacity(ctx) })
		synctest.Wait()
		const step = 50 * time.Millisecond
		last, writes := time.Now().Add(-capacityInterval), 0
		for i := 0; writes < 20; i++ {
			a.observer.set(node("n", func(n *v1.Node) { n.Status.Allocatable = list(fmt.Sprintf("%dm", 3000+i), "12Gi") }))
			if got, _, _ := hub.reports(step); len(got) > 0 {
				if since := time.Since(last); len(got) > 1 || since < capacityInterval-step {
					t.Errorf("write %d: got %v after %s", writes, got, since)
				}
				last, writes = time.Now(), writes+1
			}
		}
		cancel()
		running.Wait()
	})
}

// TestKarpenterPool checks what the limits of a NodePool leave: nothing if a limit cannot be read in a short time.
func TestKarpenterPool(t *testing.T) {
	var pool karpenterObject
	must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{
		"metadata": map[string]any{"name": "general", "annotations": map[string]any{capacityv1alpha1.AnnotationPrice: "0.2"}},
		"spec":     map[string]any{"limits": map[string]any{"cpu": "100", "memory": "1000Gi", "nodes": int64(10), "bad": "1e-2147483647"}},
		"status":   map[string]any{"resources": map[string]any{"cpu": "40", "nodes": "4"}},
	}, &pool))
	got := pool.pool(map[string]int32{"general": 45})
	if bad, given := got.Left["bad"]; got.MaxNodes != 6 || got.Left.Cpu().String() != "60" || got.Left.Memory().String() != "1000Gi" ||
		len(got.Left) != 3 || !given || !bad.IsZero() || got.BootSeconds != 45 || got.PricePerHour != "0.2" || got.Value != "general" {
		t.Errorf("got %+v", got)
	}
	if got := new(karpenterObject).pool(nil); got.MaxNodes != -1 || got.BootSeconds != -1 {
		t.Errorf("without limits: got %+v", got)
	}
}

// TestKarpenterPools checks which NodePools grow, and the boot time of the one that does: the median of 30, 40 and 90 s.
func TestKarpenterPools(t *testing.T) {
	object := func(kind, name string, content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"] = "karpenter.sh/v1", kind
		out := &unstructured.Unstructured{Object: content}
		out.SetName(name)
		return out
	}
	condition := func(name, status, at string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": name, "status": status, "lastTransitionTime": at}}}
	}
	const began = "2026-11-21T12:00:00Z"
	deleted := object("NodePool", "deleted", map[string]any{})
	deleted.SetDeletionTimestamp(new(metav1.Now()))
	objects := []runtime.Object{
		object("NodePool", "general", map[string]any{"status": condition("Ready", "True", began)}),
		object("NodePool", "not-ready", map[string]any{"status": condition("Ready", "False", began)}),
		object("NodePool", "static", map[string]any{"spec": map[string]any{"replicas": int64(3)}}),
		deleted,
	}
	for i, at := range []string{"2026-11-21T12:01:30Z", "2026-11-21T12:00:30Z", "2026-11-21T12:00:40Z"} {
		claim := object("NodeClaim", fmt.Sprint("general-", i), map[string]any{"status": condition("Initialized", "True", at)})
		claim.SetLabels(map[string]string{nodePoolLabel: "general"})
		created, err := time.Parse(time.RFC3339, began)
		must.Succeed(t, err)
		claim.SetCreationTimestamp(metav1.NewTime(created))
		objects = append(objects, claim)
	}
	a, _ := newAgent(Never, objects...)
	got := a.member.pools(t.Context(), a.observer.labelCounts)
	if len(got) != 1 || got[0].Name != "general" || got[0].BootSeconds != 40 {
		t.Errorf("got %+v", got)
	}
}

// TestUnreadableQuotas checks that no capacity is reported while quotas cannot be read.
func TestUnreadableQuotas(t *testing.T) {
	a, hub := newAgent(Never)
	a.options.QuotaNamespaces = []string{"shop"}
	fails := true
	a.member.client.(*dynamicfake.FakeDynamicClient).PrependReactor("list", "resourcequotas",
		func(clienttesting.Action) (bool, runtime.Object, error) { return fails, nil, errors.New("timeout") })
	const want = "listing the quotas of namespace shop of the cluster failed, its capacity is not reported: timeout"
	if err := a.reportCapacity(t.Context()); err == nil || err.Error() != want || reasonOf(err) != reasonMember || len(hub.received) > 0 {
		t.Errorf("got %v, reason %s, received %v", err, reasonOf(err), hub.received)
	}
	fails = false
	if err := a.reportCapacity(t.Context()); err != nil || len(hub.received) != 1 {
		t.Errorf("got %v, received %v", err, hub.received)
	}
}

// TestInvalidQuota checks that a quota with an amount that takes hours to compute with is left out, and that the others count.
func TestInvalidQuota(t *testing.T) {
	quota := func(name, hard string) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"namespace": "shop", "name": name},
			"status": map[string]any{"hard": map[string]any{"cpu": hard}, "used": map[string]any{"cpu": "4"}},
		}}
	}
	a, _ := newAgent(Never, quota("good", "10"), quota("bad", "1e2147483647"), quota("tiny", "1e-2147483647"))
	got, err := a.member.quotas(t.Context(), []string{"shop"})
	must.Succeed(t, err)
	if len(got) != 1 || got[0].Left.Cpu().String() != "6" {
		t.Errorf("got %+v", got)
	}
}

// TestAutoscalerPools checks the node groups in a status of Cluster Autoscaler: general can grow by 3 nodes, full is full, broken backs
// off, Cluster Autoscaler does not extend ill, and the nodes of other are unknown. web-small and web-large have no nodes: none of the nodes
// of web is theirs. Of the groups with the word db one is not like the nodes of db, as they have more nodes.
func TestAutoscalerPools(t *testing.T) {
	const status = `
autoscalerStatus: Running
nodeGroups:
- name: eks-general-1ac5
  health: {status: Healthy, cloudProviderTarget: 2, minSize: 1, maxSize: 5}
- name: eks-general-large-77b0
  health: {status: Healthy, cloudProviderTarget: 1, maxSize: 2}
- name: eks-full-1
  health: {cloudProviderTarget: 5, maxSize: 5}
- name: eks-broken-1
  health: {cloudProviderTarget: 1, maxSize: 5}
  scaleUp: {status: Backoff}
- name: eks-ill-1
  health: {status: Unhealthy, cloudProviderTarget: 1, maxSize: 5}
- name: other
  health: {cloudProviderTarget: 1, maxSize: 5}
- name: eks-web-1ac5
  health: {cloudProviderTarget: 3, maxSize: 3}
- name: eks-web-small-77b0
  health: {cloudProviderTarget: 0, maxSize: 20}
- name: eks-web-large-5a5a
  health: {cloudProviderTarget: 2, maxSize: 20, nodeCounts: {registered: {total: 0}}}
- name: eks-db-1ac5
  health: {cloudProviderTarget: 2, maxSize: 5}
- name: self-managed-db
  health: {cloudProviderTarget: 1, maxSize: 5}
- name: https://www.googleapis.com/compute/v1/projects/p/zones/za/instanceGroups/gke-c1-api-1111aaaa-grp
  health: {cloudProviderTarget: 2, maxSize: 4}
`
	counts := func(label string) map[string]int64 {
		switch label {
		case nodeGroupLabels[0]:
			return map[string]int64{"broken": 1, "full": 5, "general": 2, "general-large": 1, "her": 1, "ill": 1, "web": 3, "db": 2}
		case nodeGroupLabels[2]:
			return map[string]int64{"api": 2}
		}
		return nil
	}
	want := []summarize.Pool{
		{Name: "eks-general-1ac5", Source: "ClusterAutoscaler", Label: nodeGroupLabels[0], Value: "general", MaxNodes: 3, BootSeconds: -1},
		{
			Name:        "eks-general-large-77b0",
			Source:      "ClusterAutoscaler",
			Label:       nodeGroupLabels[0],
			Value:       "general-large",
			MaxNodes:    1,
			BootSeconds: -1,
		},
		{
			Name:   "https://www.googleapis.com/compute/v1/projects/p/zones/za/instanceGroups/gke-c1-api-1111aaaa-grp",
			Source: "ClusterAutoscaler", Zone: "za", Label: nodeGroupLabels[2], Value: "api", MaxNodes: 2, BootSeconds: -1,
		},
	}
	if diff := cmp.Diff(want, autoscalerPools(status, counts)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "Cluster-autoscaler status at 2023: old format", "{", strings.Repeat("#", 2<<20)} {
		if got := autoscalerPools(bad, counts); got != nil {
			t.Errorf("%.20q: got %v", bad, got)
		}
	}
}

// TestQuotaLeft checks what quotas leave: 10 - 4 CPU and 8 - 9, 5 - 1 GPUs, 10 - 3 pods and 9 - 4, 8 - 2 Gi of storage, 4 - 1 Gi of huge
// pages; limits and objects do not count.
func TestQuotaLeft(t *testing.T) {
	quota := func(name v1.ResourceName, hard, used string) *v1.ResourceQuota {
		return &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: v1.ResourceQuotaStatus{
			Hard: v1.ResourceList{name: resource.MustParse(hard)}, Used: v1.ResourceList{name: resource.MustParse(used)},
		}}
	}
	left := v1.ResourceList{}
	for _, q := range []*v1.ResourceQuota{
		quota("requests.cpu", "10", "4"), quota("cpu", "8", "9"), quota("requests.example.com/gpu", "5", "1"), quota("limits.cpu", "1", "0"),
		quota("services", "1", "0"), quota("count/services", "1", "0"), quota("pods", "10", "3"), quota("count/pods", "9", "4"),
		quota("ephemeral-storage", "8Gi", "2Gi"), quota("hugepages-2Mi", "4Gi", "1Gi"),
	} {
		addLeft(left, q)
	}
	got := map[v1.ResourceName]string{}
	for name, quantity := range left {
		got[name] = quantity.String()
	}
	want := map[v1.ResourceName]string{"cpu": "0", "example.com/gpu": "4", "pods": "5", "ephemeral-storage": "6Gi", "hugepages-2Mi": "3Gi"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
