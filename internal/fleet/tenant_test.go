package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
)

// TestTemplateOfAnotherNamespace checks that a template in the placement of tenant evil that names the workload solver of namespace ns
// neither counts as pods of solver, which excludes itself, nor tells what namespace ns has: 5 recent pods, and a quota of 7 pods.
func TestTemplateOfAnotherNamespace(t *testing.T) {
	s := hub("a")
	s.SetBinding(binding("evil", "web"))
	object := capacityOf(t, "a", now, 10, map[string]int32{"solver": 5})
	status := capacityv1alpha1.ClusterCapacityStatus{
		Cluster: "a", ObservedAt: object.CreationTimestamp, Classes: []capacityv1alpha1.NodeClass{{}},
		Groups: []capacityv1alpha1.NodeGroup{{Nodes: 10, Free: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("10"), v1.ResourcePods: resource.MustParse("100"),
		}}},
		Quotas: []capacityv1alpha1.Quota{{Namespace: "ns", Left: v1.ResourceList{v1.ResourcePods: resource.MustParse("7")}}},
		Recent: []capacityv1alpha1.RecentWorkload{{Namespace: "ns", Name: "solver", Pods: 5}},
	}
	status.ObservedAt.Time = now
	var err error
	if object.Summary, err = fit.NewSummary(&status); err != nil {
		t.Fatal(err)
	}
	s.SetCapacity(object)
	const template = `{"requireFit": true, "replicas": %d, "template": {"kind": "Deployment", "metadata": {"namespace": "ns", "name": "solver"},
		"spec": {"template": {"metadata": {"labels": {"app": "solver"}}, "spec": {"containers": [{"resources": {"requests": {"cpu": "1m"}}}],
		"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
		"labelSelector": {"matchLabels": {"app": "solver"}}}]}}}}}}}`
	evil := newPlacement(t, "p", "{}")
	evil.Namespace = "evil"
	evil.Annotations = map[string]string{
		v1beta1.AnnotationWorkload: strings.Replace(fmt.Sprintf(template, 10), `"requireFit": true, `, "", 1),
	}
	add(s, evil)
	key := keyOf("p")
	key.Namespace = "evil"
	r, _ := s.Decide(key, now)
	if promise := r.Promises["a"]; promise.Before != 0 {
		t.Errorf("the promise tells that ns has %d recent pods", promise.Before)
	}
	evil = evil.DeepCopy()
	evil.Annotations[v1beta1.AnnotationWorkload] = fmt.Sprintf(template, 11)
	evil.Generation++
	add(s, evil)
	if r, _ = s.Preview(key, now); strings.Contains(fmt.Sprint(r.Conditions, r.Ranking()), "quota") {
		t.Errorf("the status tells the quota of ns: %v", r.Conditions)
	}
	solver := newPlacement(t, "p", "{}")
	solver.Annotations = map[string]string{v1beta1.AnnotationWorkload: fmt.Sprintf(template, 2)}
	add(s, solver)
	later := now.Add((promiseTime + 1) * time.Second) // the promise to evil has ended: its replicas run
	status.ObservedAt.Time = later
	if object.Summary, err = fit.NewSummary(&status); err != nil {
		t.Fatal(err)
	}
	s.SetCapacity(object)
	if r, _ := s.Decide(keyOf("p"), later); clustersOf(r) != "a" {
		t.Errorf("2 more replicas of solver fit, but: %v", r.Conditions)
	}
}

// TestPromiseIsCapped checks that a placement that asks for a billion replicas sets aside what fits and no more: of 10 CPUs, which another
// placement has for 4, it gets 6, so that 4 more fit after the cluster has grown by 4.
func TestPromiseIsCapped(t *testing.T) {
	s := hub("a")
	s.SetCapacity(capacityOf(t, "a", now, 10, nil))
	add(s, withWorkload(t, "first", 1, 4, "{}"))
	decideNow(t, s, "first")
	greedy := withWorkload(t, "greedy", 1, fit.MaxReplicas, "{}")
	greedy.Annotations[v1beta1.AnnotationWorkload] = strings.Replace(greedy.Annotations[v1beta1.AnnotationWorkload], "true", "false", 1)
	add(s, greedy)
	decideNow(t, s, "greedy")
	s.SetCapacity(capacityOf(t, "a", now, 14, nil))
	add(s, withWorkload(t, "last", 1, 4, "{}"))
	if r := decideNow(t, s, "last"); clustersOf(r) != "a" {
		t.Errorf("4 replicas do not fit: %v", r.Conditions)
	}
	add(s, withWorkload(t, "none", 1, 1, "{}"))
	if r := decideNow(t, s, "none"); clustersOf(r) != "" {
		t.Error("more is promised than fits")
	}
}

// TestReleasedCapacityWakes checks that a placement whose workload fits nowhere is decided again when another one releases its promise: when
// it is deleted, and when it gets fewer replicas.
func TestReleasedCapacityWakes(t *testing.T) {
	for name, release := range map[string]func(s *State){
		"deleted": func(s *State) { s.DeletePlacement(keyOf("first")) },
		"fewer": func(s *State) {
			s.SetWorkload(withWorkload(t, "first", 1, 2, "{}"), nil, nil)
			decideNow(t, s, "first")
		},
	} {
		s := hub("a")
		s.SetCapacity(capacityOf(t, "a", now, 10, nil))
		add(s, withWorkload(t, "first", 1, 8, "{}"))
		add(s, withWorkload(t, "second", 1, 8, "{}"))
		decideNow(t, s, "first")
		if got := clustersOf(decideNow(t, s, "second")); got != "" {
			t.Fatalf("selected %s", got)
		}
		release(s)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if key, ok := s.EvaluateNext(ctx); !ok || key != keyOf("second") || clustersOf(decideNow(t, s, "second")) != "a" {
			t.Errorf("%s: woke %v, %t", name, key, ok)
		}
		cancel()
	}
}
