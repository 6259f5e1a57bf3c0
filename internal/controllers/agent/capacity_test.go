package agent

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
)

// TestCapacityReports checks when the capacity is written: at the start, within 10 s after a change, and every 5 minutes.
func TestCapacityReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, hub := newAgent(Never)
		report := func(after time.Duration) []string {
			<-time.After(after)
			if err := a.reportCapacity(t.Context()); err != nil {
				t.Fatal(err)
			}
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

// TestKarpenterPool checks what the limits of a NodePool leave.
func TestKarpenterPool(t *testing.T) {
	pool := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "general", "annotations": map[string]any{capacityv1alpha1.AnnotationPrice: "0.2"}},
		"spec":     map[string]any{"limits": map[string]any{"cpu": "100", "memory": "1000Gi", "nodes": int64(10), "bad": "1e-2147483647"}},
		"status":   map[string]any{"resources": map[string]any{"cpu": "40", "nodes": "4"}},
	}}
	got := karpenterPool(pool, map[string]int32{"general": 45})
	if got.MaxNodes != 6 || got.Left.Cpu().String() != "60" || got.Left.Memory().String() != "1000Gi" || len(got.Left) != 2 ||
		got.BootSeconds != 45 || got.PricePerHour != "0.2" || got.Value != "general" {
		t.Errorf("got %+v", got)
	}
	if got := karpenterPool(&unstructured.Unstructured{Object: map[string]any{}}, nil); got.MaxNodes != -1 || got.BootSeconds != -1 {
		t.Errorf("without limits: got %+v", got)
	}
}

// TestAutoscalerPools checks the node groups in a status of Cluster Autoscaler: general can grow by 3 nodes, full is full, broken backs
// off, and the nodes of other are unknown.
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
- name: other
  health: {cloudProviderTarget: 1, maxSize: 5}
`
	values := func(label string) []string {
		if label == nodeGroupLabels[0] {
			return []string{"broken", "full", "general", "general-large", "her"}
		}
		return nil
	}
	want := []capacity.Pool{
		{Name: "eks-general-1ac5", Source: "ClusterAutoscaler", Label: nodeGroupLabels[0], Value: "general", MaxNodes: 3, BootSeconds: -1},
		{
			Name:        "eks-general-large-77b0",
			Source:      "ClusterAutoscaler",
			Label:       nodeGroupLabels[0],
			Value:       "general-large",
			MaxNodes:    1,
			BootSeconds: -1,
		},
	}
	if diff := cmp.Diff(want, autoscalerPools(status, values)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "Cluster-autoscaler status at 2023: old format", "{", strings.Repeat("#", 2<<20)} {
		if got := autoscalerPools(bad, values); got != nil {
			t.Errorf("%.20q: got %v", bad, got)
		}
	}
}

// TestQuotaLeft checks what two quotas leave: 10 - 4 CPU and 8 - 8, 5 - 1 GPUs; limits and objects do not count.
func TestQuotaLeft(t *testing.T) {
	quota := func(name v1.ResourceName, hard, used string) *v1.ResourceQuota {
		return &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: v1.ResourceQuotaStatus{
			Hard: v1.ResourceList{name: resource.MustParse(hard)}, Used: v1.ResourceList{name: resource.MustParse(used)},
		}}
	}
	left := v1.ResourceList{}
	for _, q := range []*v1.ResourceQuota{
		quota("requests.cpu", "10", "4"), quota("cpu", "8", "9"), quota("requests.example.com/gpu", "5", "1"), quota("limits.cpu", "1", "0"),
		quota("services", "1", "0"), quota("pods", "10", "3"),
	} {
		addLeft(left, q)
	}
	if gpu := left["example.com/gpu"]; len(left) != 3 || left.Cpu().String() != "0" || gpu.String() != "4" || left.Pods().String() != "7" {
		t.Errorf("got %v", left)
	}
}
