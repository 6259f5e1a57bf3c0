package fit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// inputOf returns the input of a summary.
func inputOf(nodes []*v1.Node, pods []*v1.Pod) *summarize.Input {
	in := &summarize.Input{Cluster: "cluster1", Now: clustertest.Now, Pods: summarize.Pods{}}
	for _, n := range nodes {
		in.Nodes = append(in.Nodes, summarize.NewNode(n))
	}
	for _, p := range pods {
		in.Pods.Set(summarize.NewPod(p))
	}
	return in
}

// summaryOf returns the summary of a cluster.
func summaryOf(t testing.TB, in *summarize.Input) *Summary {
	t.Helper()
	s, err := NewSummary(summarize.Summarize(in))
	must.Succeed(t, err)
	return s
}

// templateOf returns a template that requests amounts, after changes.
func templateOf(t testing.TB, cpu, memory int64, changes ...func(*v1.PodTemplateSpec)) *Template {
	t.Helper()
	p := &v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: clustertest.Pod("", "", cpu, memory).Spec,
	}
	for _, change := range changes {
		change(p)
	}
	out, err := NewTemplate(types.NamespacedName{Namespace: "shop", Name: "web"}, p)
	must.Succeed(t, err)
	return out
}

// workload returns a workload of one template.
func workload(t *Template, replicas int64) *Workload {
	return &Workload{Parts: []Part{{t, 1}}, Replicas: replicas}
}

func zoned(z string) map[string]string { return map[string]string{v1.LabelTopologyZone: z} }

func spreadOver(key string, skew int32) func(*v1.PodTemplateSpec) {
	return func(p *v1.PodTemplateSpec) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		})
	}
}

// TestFit checks fits in a cluster with 3 nodes of 4 CPU in zone a, and one of 8 CPU in zone b with a taint, each with 8Gi.
func TestFit(t *testing.T) {
	taint := v1.Taint{Key: "gpu", Effect: v1.TaintEffectNoSchedule}
	nodes := []*v1.Node{
		clustertest.Node("a1", 4000, 8192, zoned("a")),
		clustertest.Node("a2", 4000, 8192, zoned("a")),
		clustertest.Node("a3", 4000, 8192, zoned("a")),
		clustertest.Node("b1", 8000, 8192, zoned("b"), taint),
	}
	tolerate := func(p *v1.PodTemplateSpec) {
		p.Spec.Tolerations = []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}}
	}
	port := func(p *v1.PodTemplateSpec) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	}
	apart := func(change func(*v1.PodAffinityTerm)) func(*v1.PodTemplateSpec) {
		return func(p *v1.PodTemplateSpec) {
			term := v1.PodAffinityTerm{TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}
			change(&term)
			p.Spec.Affinity = &v1.Affinity{
				PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}},
			}
		}
	}
	const otherPods = "cannot be answered: it requires anti-affinity to other pods, and summaries have no pods"
	limited := inputOf(nodes, []*v1.Pod{func() *v1.Pod {
		p := clustertest.Pod("p", "a1", 0, 0)
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
		return p
	}()})
	limited.Quotas = []v1alpha1.Quota{{Namespace: "shop", Left: v1.ResourceList{v1.ResourcePods: resource.MustParse("5")}}}
	free := inputOf(nodes, nil)
	for _, tt := range []struct {
		name   string
		in     *summarize.Input
		pod    *Template
		want   int64
		reason string
	}{
		// 3 nodes x 4 CPU / 1 CPU
		{"cpu", free, templateOf(t, 1000, 512), 12, "limited by CPU"},
		// 3 nodes x floor(8Gi / 3Gi)
		{"memory", free, templateOf(t, 1000, 3072), 6, "limited by memory"},
		// The largest node without a taint has 4 CPU.
		{"too large", free, templateOf(t, 5000, 512), 0, "needs 5 CPU on one node; the largest free node of cluster1 has 4"},
		// The node of 8 CPU.
		{"tolerated", free, templateOf(t, 5000, 512, tolerate), 1, "limited by CPU"},
		{
			"selector", free, templateOf(t, 1000, 512, func(p *v1.PodTemplateSpec) { p.Spec.NodeSelector = zoned("b") }), 0,
			"does not tolerate a taint of the nodes of cluster1 that match, such as gpu:NoSchedule",
		},
		{
			"no such zone", free, templateOf(t, 1000, 512, func(p *v1.PodTemplateSpec) { p.Spec.NodeSelector = zoned("c") }), 0,
			"no node of cluster1 is known to match its node selector and node affinity",
		},
		{"no nodes", inputOf(nil, nil), templateOf(t, 1000, 512), 0, "cluster1 has no groups of nodes"},
		// One pod per node, and the port is in use on one node.
		{"host port", free, templateOf(t, 1000, 512, port), 3, "limited to one pod per node"},
		{"host port of a sidecar", free, templateOf(t, 1000, 512, func(p *v1.PodTemplateSpec) {
			port(p)
			sidecar := v1.Container{RestartPolicy: new(v1.ContainerRestartPolicyAlways), Ports: p.Spec.Containers[0].Ports}
			p.Spec.InitContainers, p.Spec.Containers[0].Ports = []v1.Container{sidecar}, nil
		}), 3, "limited to one pod per node"},
		{"host port in use", limited, templateOf(t, 1000, 512, port), 2, "limited to one pod per node"},
		// Karpenter is about to delete the only node, whose taint is tolerated.
		{
			"drained", inputOf([]*v1.Node{clustertest.Node("d", 4000, 8192, nil, v1.Taint{Key: "karpenter.sh/disrupted", Effect: v1.TaintEffectNoSchedule})}, nil),
			templateOf(t, 1000, 512, func(p *v1.PodTemplateSpec) { p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} }), 0,
			"needs 1 CPU on one node; the largest free node of cluster1 has 0",
		},
		// 5 pods are left by the quota of namespace shop.
		{"quota", limited, templateOf(t, 1000, 512), 5, "the quota of namespace shop leaves 5 pods"},
		// The tainted node is a host without pods: 1 on each of the other nodes.
		{"hosts", free, templateOf(t, 1000, 512, spreadOver(v1.LabelHostname, 1)), 3, "limited by its topology spread constraints"},
		// 4 on a1 to a3, and up to 8 on b1: min(8, 4 + 2) there.
		{
			"hosts, tolerated", free, templateOf(t, 1000, 512, spreadOver(v1.LabelHostname, 2), tolerate), 18,
			"limited by its topology spread constraints",
		},
		// Zone b is a domain without pods.
		{"zones", free, templateOf(t, 1000, 512, spreadOver(v1.LabelTopologyZone, 2)), 2, "limited by its topology spread constraints"},
		// 8 in zone b, and 8 + 2 in zone a.
		{
			"zones, tolerated", free, templateOf(t, 1000, 512, spreadOver(v1.LabelTopologyZone, 2), tolerate), 18,
			"limited by its topology spread constraints",
		},
		// One pod per host: 3 in zone a, and 1 in zone b. Zone b has the fewest, so that zone a takes 1 + 1.
		{
			"zones, then hosts", free,
			templateOf(t, 1000, 512, spreadOver(v1.LabelTopologyZone, 1), spreadOver(v1.LabelHostname, 1), tolerate), 3,
			"limited by its topology spread constraints",
		},
		{
			"apart in its namespace", free,
			templateOf(t, 1000, 512, apart(func(term *v1.PodAffinityTerm) { term.Namespaces = []string{"shop"} })), 3,
			"limited to one pod per node",
		},
		{
			"apart from another namespace", free,
			templateOf(t, 1000, 512, apart(func(term *v1.PodAffinityTerm) { term.Namespaces = []string{"shop", "lab"} })), 0, otherPods,
		},
		{
			"apart from all namespaces", free,
			templateOf(t, 1000, 512, apart(func(term *v1.PodAffinityTerm) { term.NamespaceSelector = &metav1.LabelSelector{} })), 0, otherPods,
		},
		{
			"apart from other tenants", free,
			templateOf(t, 1000, 512, apart(func(term *v1.PodAffinityTerm) { term.MismatchLabelKeys = []string{"tenant"} })), 0, otherPods,
		},
		{
			"apart by zone", free,
			templateOf(t, 1000, 512, apart(func(term *v1.PodAffinityTerm) { term.TopologyKey = v1.LabelTopologyZone })), 0,
			"cannot be answered: it requires anti-affinity by topology.kubernetes.io/zone, and summaries have no pods",
		},
		{"affinity to pods", free, templateOf(t, 1000, 512, func(p *v1.PodTemplateSpec) {
			p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{TopologyKey: v1.LabelHostname}},
			}}
		}), 0, "cannot be answered: it requires pod affinity, and summaries have no pods"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, w := summaryOf(t, tt.in), workload(tt.pod, 1)
			if got := w.CountFit(s, w.Replicas, nil, 0); got.Now != tt.want || got.WithSlack != tt.want {
				t.Errorf("got %+v, want %d", got, tt.want)
			}
			if got := w.DescribeLimit(s, nil, 0); got != tt.reason {
				t.Errorf("got %q, want %q", got, tt.reason)
			}
		})
	}
}

// TestRunning checks the further replicas in a cluster with 3 nodes of 4 CPU in zone a and one in zone b, where some run already: each
// takes the place of one that excludes itself, and of none otherwise or if its host port blocks its node anyway.
func TestRunning(t *testing.T) {
	s := summaryOf(t, inputOf([]*v1.Node{
		clustertest.Node("a1", 4000, 8192, zoned("a")),
		clustertest.Node("a2", 4000, 8192, zoned("a")),
		clustertest.Node("a3", 4000, 8192, zoned("a")),
		clustertest.Node("b1", 4000, 8192, zoned("b")),
	}, nil))
	alone := func(p *v1.PodTemplateSpec) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
				TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
			}},
		}}
	}
	port := func(p *v1.PodTemplateSpec) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}} }
	for _, tt := range []struct {
		name          string
		pod           *Template
		running, want int64
		limit         string
	}{
		{"unconstrained", templateOf(t, 1000, 512), 2, 16, "limited by CPU"},
		// One on each of 4 nodes, less 3.
		{"alone", templateOf(t, 1000, 512, alone), 3, 1, "limited to one pod per node; 3 replicas of the workload run already"},
		{"more than fit", templateOf(t, 1000, 512, alone), 5, 0, "limited to one pod per node; 5 replicas of the workload run already"},
		{"host port", templateOf(t, 1000, 512, port), 3, 4, "limited to one pod per node"},
		// The running pods may be of an older template, without the port.
		{
			"alone, host port", templateOf(t, 1000, 512, alone, port), 3, 1,
			"limited to one pod per node; 3 replicas of the workload run already",
		},
		// 4 in zone b and 4 + 2 in zone a, less 3.
		{
			"zones", templateOf(t, 1000, 512, spreadOver(v1.LabelTopologyZone, 2)), 3, 7,
			"limited by its topology spread constraints; 3 replicas of the workload run already",
		},
	} {
		w := workload(tt.pod, 1)
		if fit, limit := w.CountFit(s, w.Replicas, nil, tt.running), w.DescribeLimit(s, nil, tt.running); fit.Now != tt.want ||
			limit != tt.limit {
			t.Errorf("%s: got %d, %s; want %d, %s", tt.name, fit.Now, limit, tt.want, tt.limit)
		}
	}
}

// TestSharedSelectors checks that pods of one template count as one per node if pods of another one are kept from their nodes, and that the
// limit says whether selectors can match pods of other workloads: a summary has no pods.
func TestSharedSelectors(t *testing.T) {
	s := summaryOf(t, inputOf([]*v1.Node{clustertest.Node("a", 4000, 8192, nil), clustertest.Node("b", 4000, 8192, nil)}, nil))
	const deployment = `{"kind": "Deployment", "metadata": {"name": %q}, "spec": {"selector": {"matchLabels": {"app": %[1]q}}, "template": {
		"metadata": {"labels": {"app": %[1]q, "release": "edge"}},
		"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "affinity": {"podAntiAffinity": {
			"requiredDuringSchedulingIgnoredDuringExecution": [%s]}}}}}}`
	const term = `{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {%s}}}`
	read := func(name, terms string) *Workload {
		w, err := ReadWorkload(fmt.Appendf(nil, deployment, name, terms))
		must.Succeed(t, err)
		return w
	}
	release, own := fmt.Sprintf(term, `"release": "edge"`), fmt.Sprintf(term, `"app": "web", "release": "edge"`)
	const unknown = "; other pods that its selectors match are not known"
	for name, test := range map[string]struct {
		workload *Workload
		now      int64
		unknown  bool
	}{
		"own pods":             {read("web", own), 2, false},
		"pods of its release":  {read("web", release), 2, true},
		"no terms":             {read("web", ""), 8, false},
		"two that do not meet": {Join([]*Workload{read("web", release), read("api", "")}), 1, true},
		"two":                  {Join([]*Workload{read("web", ""), read("api", "")}), 4, false},
	} {
		count, limit := test.workload.CountFit(s, 1, nil, 0), test.workload.DescribeLimit(s, nil, 0)
		if count.Now != test.now || strings.Contains(limit, unknown) != test.unknown {
			t.Errorf("%s: %+v, %s", name, count, limit)
		}
	}
}

// TestScaleUp checks what the autoscaler adds: pool small has 2 more nodes of 4 CPU after 60 s, pool large 10 of 16 CPU after 300 s,
// with a price that is not valid.
func TestScaleUp(t *testing.T) {
	nodes := []*v1.Node{
		clustertest.Node("a1", 4000, 8192, map[string]string{"pool": "small"}),
		clustertest.Node("b1", 16000, 32768, map[string]string{"pool": "large"}),
	}
	in := inputOf(nodes, []*v1.Pod{clustertest.Pod("p1", "a1", 4000, 1024), clustertest.Pod("p2", "b1", 16000, 1024)})
	in.Pools = []summarize.Pool{
		{
			Name: "small", Source: summarize.SourceKarpenter, Label: "pool", Value: "small",
			MaxNodes: 2, BootSeconds: 60, PricePerHour: "0.2",
		},
		{
			Name: "large", Source: summarize.SourceKarpenter, Label: "pool", Value: "large",
			MaxNodes: -1, BootSeconds: 300, PricePerHour: "free", Left: clustertest.List(160_000, 1<<30),
		},
	}
	s := summaryOf(t, in)
	for _, tt := range []struct {
		cpu, replicas int64
		want          Fit
	}{
		// 2 nodes x 4, and 160/16 = 10 nodes x 16; 5 replicas need 2 small nodes.
		{1000, 5, Fit{ScaledUp: 168, Wait: 60, NewNodes: 2, Cost: 400_000}},
		// 8 on small nodes, 2 on a large one.
		{1000, 10, Fit{ScaledUp: 168, Wait: 300, NewNodes: 3, Cost: Unknown}},
		{5000, 1, Fit{ScaledUp: 30, Wait: 300, NewNodes: 1, Cost: Unknown}},
		{5000, 31, Fit{ScaledUp: 30, Wait: Unknown, Cost: Unknown}},
		{1000, 0, Fit{ScaledUp: 168}},
		{1000, MaxReplicas, Fit{ScaledUp: 168, Wait: Unknown, Cost: Unknown}},
	} {
		if got := workload(templateOf(t, tt.cpu, 512), tt.replicas).CountFit(s, tt.replicas, nil, 0); got != tt.want {
			t.Errorf("%d replicas of %d: got %+v, want %+v", tt.replicas, tt.cpu, got, tt.want)
		}
	}
}

// TestNodeGroups checks what three node groups of Cluster Autoscaler with 2 more nodes each add to full nodes in three zones: of a template
// for zone za, the nodes of the group that is in za, and none if the zones of the groups are not known.
func TestNodeGroups(t *testing.T) {
	var nodes []*v1.Node
	var pods []*v1.Pod
	for _, zone := range []string{"za", "zb", "zc"} {
		nodes = append(nodes,
			clustertest.Node("n-"+zone, 4000, 8192, map[string]string{"pool": "web", v1.LabelTopologyZone: zone, "disk": "ssd"}))
		pods = append(pods, clustertest.Pod("p-"+zone, "n-"+zone, 4000, 1024))
	}
	selecting := func(key, value string) *Template {
		return templateOf(t, 3000, 512, func(p *v1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{key: value} })
	}
	for name, test := range map[string]struct {
		nodes    []*v1.Node
		zones    []string
		template *Template
		want     int64
	}{
		"any zone":               {nodes, []string{"za", "zb", "zc"}, templateOf(t, 3000, 512), 6},
		"one zone":               {nodes, []string{"za", "zb", "zc"}, selecting(v1.LabelTopologyZone, "za"), 2},
		"unknown zones":          {nodes, []string{"", "", ""}, selecting(v1.LabelTopologyZone, "za"), 0},
		"label of all nodes":     {nodes, []string{"", "", ""}, selecting("disk", "ssd"), 6},
		"cluster with one zone":  {nodes[:1], []string{""}, selecting(v1.LabelTopologyZone, "za"), 2},
		"unknown zones, any":     {nodes, []string{"", "", ""}, templateOf(t, 3000, 512), 6},
		"group without a node":   {nodes[:2], []string{"zc"}, templateOf(t, 3000, 512), 0},
		"labels of another pool": {nodes, []string{"za"}, selecting("pool", "db"), 0},
	} {
		in := inputOf(test.nodes, pods)
		for i, zone := range test.zones {
			in.Pools = append(in.Pools, summarize.Pool{
				Name:     fmt.Sprint("group-", i),
				Source:   summarize.SourceClusterAutoscaler,
				Zone:     zone,
				Label:    "pool",
				Value:    "web",
				MaxNodes: 2,
			})
		}
		if got := workload(test.template, 1).CountFit(summaryOf(t, in), 1, nil, 0).ScaledUp; got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// TestPreemption checks the pods that fit a node of 4 CPU, of which a placeholder holds 3: pods that never preempt get 1.
func TestPreemption(t *testing.T) {
	held := clustertest.Pod("held", "a", 3000, 512)
	held.Labels = map[string]string{slack.PlaceholderLabel: "default"}
	s := summaryOf(t, inputOf([]*v1.Node{clustertest.Node("a", 4000, 8192, nil)}, []*v1.Pod{held}))
	for policy, want := range map[v1.PreemptionPolicy]int64{v1.PreemptLowerPriority: 4, v1.PreemptNever: 1} {
		w := workload(templateOf(t, 1000, 512, func(p *v1.PodTemplateSpec) { p.Spec.PreemptionPolicy = &policy }), 1)
		if got := w.CountFit(s, w.Replicas, nil, 0); got.Now != 1 || got.WithSlack != want || got.ScaledUp != want {
			t.Errorf("%s: got %+v, want %d with slack", policy, got, want)
		}
	}
	large := templateOf(t, 2000, 512, func(p *v1.PodTemplateSpec) { p.Spec.PreemptionPolicy = new(v1.PreemptNever) })
	const want = "needs 2 CPU on one node; the largest free node of cluster1 has 1"
	if got := workload(large, 1).DescribeLimit(s, nil, 0); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestScaleUpOfSeveralShapes checks a workload of two pods, one for zone a and one for zone b, in a pool whose only nodes are full: of N
// more nodes, each in either zone with 4 CPU, both zones surely have one if N is 3, and only one of them has if N is 1.
func TestScaleUpOfSeveralShapes(t *testing.T) {
	nodes, pods := []*v1.Node{}, []*v1.Pod{}
	w := &Workload{Replicas: 1}
	for _, zone := range []string{"a", "b"} {
		labels := zoned(zone)
		labels["pool"] = "general"
		nodes, pods = append(nodes, clustertest.Node(zone, 4000, 8192, labels)), append(pods, clustertest.Pod(zone, zone, 4000, 8192))
		w.Parts = append(w.Parts, Part{templateOf(t, 1000, 512, func(p *v1.PodTemplateSpec) { p.Spec.NodeSelector = zoned(zone) }), 1})
	}
	// (N - 1) x 4 pods of each zone, half of which the other pod can take the place of.
	for further, want := range map[int32]int64{1: 0, 2: 2, 3: 4} {
		in := inputOf(nodes, pods)
		in.Pools = []summarize.Pool{{Name: "general", Label: "pool", Value: "general", MaxNodes: further, BootSeconds: 60}}
		if got := w.CountFit(summaryOf(t, in), w.Replicas, nil, 0).ScaledUp; got != want {
			t.Errorf("%d further nodes: got %d replicas, want %d", further, got, want)
		}
	}
}

// TestCrowd checks the worst case of small pods: a node loses its first place when they use what the places leave free on it.
func TestCrowd(t *testing.T) {
	small := func(cpu, pods int64) Part { return Part{templateOf(t, cpu, 10), pods} }
	for name, test := range map[string]struct {
		nodes, cpu int64
		parts      []Part
		promised   []Part
		want       int64
	}{
		// 3 nodes x 2 places. 10 pods of 100m take one of each node, 20 no more: 2 + 3 of 6 for a replica, 4 + 3 for two.
		"many small pods": {3, 8000, []Part{{templateOf(t, 4000, 512), 2}, small(100, 10)}, nil, 1},
		// 3 nodes with a place of 6 CPU and 2 CPU free: 3 pods of 2 CPU take at most one place, and one more; 6 take all.
		"pods that fit beside": {3, 8000, []Part{{templateOf(t, 6000, 512), 1}, small(2000, 3)}, nil, 1},
		// Half a CPU is free beside the place of each node: 5 pods of 100m fit there.
		"free beside all places": {3, 8500, []Part{{templateOf(t, 8000, 512), 1}}, []Part{small(100, 5)}, 3},
		// 10 nodes with 2 places each; the pods of 100m take one place.
		"promised": {10, 16_000, []Part{{templateOf(t, 8000, 512), 1}}, []Part{small(100, 30)}, 10},
		// A pod of 6 CPU takes three of 12 places of 2 CPU: 3 + 3 for a replica.
		"large pods": {3, 8000, []Part{{templateOf(t, 2000, 10), 3}, {templateOf(t, 6000, 10), 1}}, nil, 1},
	} {
		var nodes []*v1.Node
		for i := range test.nodes {
			nodes = append(nodes, clustertest.Node(fmt.Sprint("n", i), test.cpu, 65536, nil))
		}
		w := &Workload{Parts: test.parts, Replicas: 1}
		if got := w.CountFit(summaryOf(t, inputOf(nodes, nil)), 1, test.promised, 0); got.Now != test.want || got.ScaledUp != test.want {
			t.Errorf("%s: got %+v, want %d", name, got, test.want)
		}
	}
}

// TestFitIsNotOptimistic checks that what the summary promises fits in any order: the pods of a workload with two templates and promised
// pods are scheduled in a random order onto random nodes where they fit.
func TestFitIsNotOptimistic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		nodes, pods := clustertest.Random(rng, rapid.IntRange(1, 60).Draw(rt, "nodes"))
		draw := func(name string) *Template {
			return templateOf(t, rapid.Int64Range(100, 8000).Draw(rt, name+" cpu"), rapid.Int64Range(100, 8000).Draw(rt, name+" memory"))
		}
		w := &Workload{Parts: []Part{{draw("first"), rapid.Int64Range(1, 3).Draw(rt, "pods")}}, Replicas: 1}
		if rapid.Bool().Draw(rt, "two") {
			w.Parts = append(w.Parts, Part{draw("second"), 1})
		}
		promised := []Part{{draw("promised"), rapid.Int64Range(0, 20).Draw(rt, "promised")}}
		in := inputOf(nodes, pods)
		fit := w.CountFit(summaryOf(t, in), w.Replicas, promised, 0).Now
		var queue []*Template
		for _, p := range w.Parts {
			for range fit * p.Pods {
				queue = append(queue, p.Template)
			}
		}
		for range promised[0].Pods {
			queue = append(queue, promised[0].Template)
		}
		rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
		free := freeOf(nodes, pods)
		missing := map[*Template]int{}
		for _, p := range queue {
			if !scheduleAnywhere(free, p, rng) {
				missing[p]++
			}
		}
		for _, p := range w.Parts {
			if missing[p.Template] > 0 {
				rt.Fatalf("%d of %d replicas: %d pods do not fit", fit, fit, missing[p.Template])
			}
		}
	})
}

// freeOf returns what pods leave free on each node without taints: CPU, memory and pods.
func freeOf(nodes []*v1.Node, pods []*v1.Pod) (free [][3]int64) {
	for _, n := range nodes {
		if len(n.Spec.Taints) > 0 {
			continue
		}
		left := [3]int64{
			n.Status.Allocatable.Cpu().MilliValue(),
			n.Status.Allocatable.Memory().Value(),
			n.Status.Allocatable.Pods().Value(),
		}
		for _, p := range pods {
			if requests := p.Spec.Containers[0].Resources.Requests; p.Spec.NodeName == n.Name {
				left[0], left[1], left[2] = left[0]-requests.Cpu().MilliValue(), left[1]-requests.Memory().Value(), left[2]-1
			}
		}
		free = append(free, [3]int64{max(left[0], 0), max(left[1], 0), max(left[2], 0)})
	}
	return free
}

// scheduleAnywhere takes the requests of a template from a random node where they fit, and reports whether there is one.
func scheduleAnywhere(free [][3]int64, t *Template, rng *rand.Rand) bool {
	for _, i := range rng.Perm(len(free)) {
		if podsOn(free[i], t) > 0 {
			free[i][0], free[i][1], free[i][2] = free[i][0]-t.requests[0].amount, free[i][1]-t.requests[1].amount, free[i][2]-1
			return true
		}
	}
	return false
}

// podsOn returns the number of pods of a template, which requests CPU and memory, that fit free amounts.
func podsOn(free [3]int64, t *Template) int64 {
	return min(free[0]/t.requests[0].amount, free[1]/t.requests[1].amount, free[2])
}

// TestMergedFit checks that the groups of a large cluster lose at most 10 % of what fits.
func TestMergedFit(t *testing.T) {
	nodes, pods := clustertest.Random(rand.New(rand.NewPCG(7, 1)), 2000)
	merged, free := summaryOf(t, inputOf(nodes, pods)), freeOf(nodes, pods)
	for _, size := range [][2]int64{{100, 128}, {500, 1024}, {1000, 4096}, {2000, 2048}, {4000, 8192}, {8000, 8192}} {
		template, want := templateOf(t, size[0], size[1]), int64(0)
		for _, node := range free {
			want += podsOn(node, template)
		}
		got := workload(template, 1).CountFit(merged, 1, nil, 0).Now
		t.Logf("%v: %d of %d", size, got, want)
		if got > want || got < want*9/10 {
			t.Errorf("%v: got %d, the nodes take %d", size, got, want)
		}
	}
}

// TestBadSummaries checks that summaries that are not valid are refused.
func TestBadSummaries(t *testing.T) {
	valid := func() *v1alpha1.ClusterCapacityStatus {
		return summarize.Summarize(inputOf([]*v1.Node{clustertest.Node("a", 1000, 1024, zoned("a"))}, nil))
	}
	for _, tt := range []struct {
		change func(*v1alpha1.ClusterCapacityStatus)
		want   string
	}{
		{func(s *v1alpha1.ClusterCapacityStatus) { s.ObservedAt = metav1.Time{} }, "status.observedAt: required"},
		{func(s *v1alpha1.ClusterCapacityStatus) { s.Groups[0].Class = 7 }, "status.groups[0].class: found 7: must be the index of one of 1 classes, counted from 0"},
		{func(s *v1alpha1.ClusterCapacityStatus) { s.Groups[0].Class = -1 }, "found -1"},
		{func(s *v1alpha1.ClusterCapacityStatus) { s.Groups[0].Nodes = 0 }, "status.groups[0].nodes: found 0: must be in [1, 100000]"},
		{func(s *v1alpha1.ClusterCapacityStatus) { s.Groups = make([]v1alpha1.NodeGroup, 301) }, "found 301, at most 300 are allowed"},
		{func(s *v1alpha1.ClusterCapacityStatus) {
			s.ScaleUp = []v1alpha1.ScaleUp{{MaxNodes: 1, PricePerHour: "x"}}
		}, "pricePerHour"},
	} {
		s := valid()
		tt.change(s)
		if _, err := NewSummary(s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// BenchmarkFleet computes the fit of a new template over 5,000 clusters with 300 groups each.
func BenchmarkFleet(b *testing.B) {
	fleet := make([]*Summary, 5000)
	for i := range fleet {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		status := &v1alpha1.ClusterCapacityStatus{Cluster: fmt.Sprint(i), ObservedAt: metav1.NewTime(clustertest.Now)}
		for c := range 10 {
			status.Classes = append(status.Classes, v1alpha1.NodeClass{Labels: map[string]string{
				v1.LabelTopologyRegion: fmt.Sprintf("region-%d", i%30),
				v1.LabelTopologyZone:   fmt.Sprintf("zone-%d", c%3),
				"pool":                 fmt.Sprint(c),
			}})
		}
		for g := range 300 {
			free := clustertest.List(rng.Int64N(64_000), rng.Int64N(256<<10))
			free[v1.ResourcePods], free[v1.ResourceEphemeralStorage] = resource.MustParse("90"), resource.MustParse("90Gi")
			status.Groups = append(status.Groups, v1alpha1.NodeGroup{Class: int32(g % 10), Nodes: 1 + rng.Int32N(20), Free: free})
		}
		s, err := NewSummary(status)
		must.Succeed(b, err)
		fleet[i] = s
	}
	total := int64(0)
	for b.Loop() {
		w := workload(templateOf(b, 1000, 2048), 100) // a new one has no caches
		for _, s := range fleet {
			total += w.CountFit(s, w.Replicas, nil, 0).Now
		}
	}
	if total == 0 {
		b.Fatal("nothing fits")
	}
}

// TestJobCompletions verifies that a Job has as many pods at once as it has completions at most, and none while it is suspended.
func TestJobCompletions(t *testing.T) {
	for spec, want := range map[string]int64{
		`"parallelism":10,"completions":3`: 3, `"parallelism":3,"completions":10`: 3, `"parallelism":10`: 10, `"completions":3`: 1,
		`"parallelism":3,"suspend":true`: 0,
	} {
		w, err := ReadWorkload([]byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{` + spec +
			`,"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}}}`))
		if err != nil || w.Replicas != want {
			t.Errorf("%s: %+v, %v, want %d", spec, w, err, want)
		}
	}
}

// TestUncounted verifies that objects of a ManifestWork whose pods do not count are named.
func TestUncounted(t *testing.T) {
	w, err := ReadWorkload([]byte(`{"kind": "ManifestWork", "spec": {"workload": {"manifests": [{"kind": "ConfigMap"}, {"kind": "CronJob"},
		{"kind": "Pod", "spec": {"containers": [{"name": "c"}]}}, {"kind": "DaemonSet"}]}}}`))
	must.Succeed(t, err)
	const want = "spec.workload.manifests[1]: the pods of a CronJob do not count; " +
		"spec.workload.manifests[3]: the pods of a DaemonSet do not count"
	if got := strings.Join(w.Unknown, "; "); got != want || len(w.Parts) != 1 {
		t.Errorf("%d parts, %s, want %s", len(w.Parts), got, want)
	}
}
