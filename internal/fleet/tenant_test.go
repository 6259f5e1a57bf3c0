package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// TestShareOfNamespace checks that the placements of tenant a, with as many replicas as they may ask for, leave tenant b half of the free
// capacity and of the limit, unless the limit has another share, a third namespace has the cluster, or no other one; and that the status
// says so. Of 100 CPUs, pods use none: promises are by the capacity, limits without end.
func TestShareOfNamespace(t *testing.T) {
	const unlimited = ""
	for _, tc := range []struct {
		limit, fitsB, statusA string
		alone, third          bool
	}{
		{limit: unlimited, fitsB: "50", statusA: "capacity is set aside for 50 of 1000000000 replicas: the others do not fit, or exceed the 50% of"},
		{limit: `{"namespaceShare": "80%"}`, fitsB: "20", statusA: "exceed the 80% of the free capacity"},
		{limit: `{"namespaceShare": "100%"}`, fitsB: "0"},
		{limit: unlimited, fitsB: "0", alone: true},
		{limit: `{"cpu": "60"}`, fitsB: "30", statusA: "leaves 0 replicas: the placements of a namespace may have 50% of it"},
		{limit: `{"cpu": "60", "namespaceShare": "90%"}`, fitsB: "6", statusA: "the placements of a namespace may have 90% of it"},
		{limit: `{"cpu": "60"}`, fitsB: "20", statusA: "the placements of a namespace may have 33.3% of it", third: true},
		{limit: `{"cpu": "60"}`, fitsB: "0", statusA: "999999940 of 1000000000 replicas are in no cluster", alone: true},
	} {
		s := hub("a")
		if tc.limit != unlimited {
			s.SetCluster(limited("a", tc.limit))
		}
		if tc.alone { // Open Cluster Management binds the set of all clusters to a namespace of its own
			s.SetBinding(binding(globalSetNamespace, "web"))
		} else {
			s.SetBinding(binding("b", "web"))
		}
		if tc.third {
			s.SetBinding(binding("c", "web"))
		}
		s.SetCapacity(capacityOf(t, "a", now, 100, nil))
		all := ""
		for _, name := range []string{"first", "second"} {
			p := withWorkload(t, name, 1, fit.MaxReplicas, "{}")
			text := strings.Replace(p.Annotations[v1beta1.AnnotationWorkload], "true, ", `false, "divide": true, `, 1)
			p.Annotations[v1beta1.AnnotationWorkload] = text
			add(s, p)
			r := decideNow(t, s, name)
			all += fmt.Sprint(r.Warnings, r.Conditions) + ";"
		}
		if !strings.Contains(all, tc.statusA) {
			t.Errorf("%+v: the status is %s", tc, all)
		}
		b := withWorkload(t, "b", 1, 1000, "{}")
		b.Namespace = "b"
		if tc.alone {
			b.Namespace = "ns"
		}
		add(s, b)
		r, _ := s.Preview(types.NamespacedName{Namespace: b.Namespace, Name: "b"}, now)
		if reason := r.Ranking()[0].Reason; !strings.HasPrefix(reason, tc.fitsB+" replica") {
			t.Errorf("%+v: %s fit tenant b", tc, reason)
		}
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
		"deleted, while a part of the second is in no cluster": func(s *State) { s.DeletePlacement(keyOf("first")) },
	} {
		s := hub("a")
		s.SetCapacity(capacityOf(t, "a", now, 10, nil))
		add(s, withWorkload(t, "first", 1, 8, "{}"))
		second, want := withWorkload(t, "second", 1, 8, "{}"), ""
		if strings.Contains(name, "part") {
			s.SetCluster(limited("a", `{"cpu": "10"}`))
			text := &second.Annotations
			(*text)[v1beta1.AnnotationWorkload] = strings.Replace((*text)[v1beta1.AnnotationWorkload], "true", `true, "divide": true`, 1)
			want = "a"
		}
		add(s, second)
		decideNow(t, s, "first")
		if got := clustersOf(decideNow(t, s, "second")); got != want {
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

// TestShareWakes checks the share of a namespace in the limit of a cluster, 1/n if n namespaces are bound to sets with the cluster: neither
// bindings of other sets count, nor of sets that do not exist. The placements with a workload whose share changes are decided again.
func TestShareWakes(t *testing.T) {
	s := hub("a")
	s.SetCluster(limited("a", `{"cpu": "60"}`))
	s.SetCluster(managed("z", "set=gold"))
	s.SetClusterSet(bySet("gold"))
	s.SetCapacity(capacityOf(t, "a", now, 100, nil))
	p := withWorkload(t, "p", 1, 100, "{}")
	text := strings.Replace(p.Annotations[v1beta1.AnnotationWorkload], "true, ", `false, "divide": true, `, 1)
	p.Annotations[v1beta1.AnnotationWorkload] = text
	add(s, p)
	add(s, newPlacement(t, "without-workload", "{}"))
	all := bySet("all")
	all.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{}
	misnamed := binding("b", "web")
	misnamed.Spec.ClusterSet = "other"
	for i, step := range []struct {
		change func() []types.NamespacedName
		wakes  bool
		want   int64
	}{
		{func() []types.NamespacedName { return nil }, false, 60},
		{func() []types.NamespacedName { return s.SetBinding(binding("b", "web")) }, true, 30},
		{func() []types.NamespacedName { return s.SetBinding(binding("c", "web")) }, true, 20},
		{func() []types.NamespacedName { return s.SetBinding(misnamed) }, true, 30},
		{func() []types.NamespacedName { return s.SetBinding(binding("b", "gold")) }, false, 30},
		{func() []types.NamespacedName { return s.SetBinding(binding("b", "all")) }, false, 30},
		{func() []types.NamespacedName { return s.SetClusterSet(all) }, true, 20},
		{func() []types.NamespacedName { return s.SetClusterSet(bySet("all")) }, true, 30},
		{func() []types.NamespacedName { return s.DeleteClusterSet("all") }, false, 30},
		{func() []types.NamespacedName { return s.DeleteBinding("c", "web") }, true, 60},
	} {
		keys := step.change()
		if woken := slices.Equal(keys, []types.NamespacedName{keyOf("p")}); woken != step.wakes || !woken && len(keys) > 0 {
			t.Errorf("step %d: woke %v", i, keys)
		}
		if got := decideNow(t, s, "p").Promises["a"].Replicas; got != step.want {
			t.Errorf("step %d: %d replicas, want %d", i, got, step.want)
		}
	}
}
