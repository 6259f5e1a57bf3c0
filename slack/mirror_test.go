package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// antiAffine adds required anti-affinity to pods with app=web on the same node.
func antiAffine(s *v1.PodSpec) {
	s.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, TopologyKey: v1.LabelHostname,
	}}}}
}

// gpu adds a limit of one device.
func gpu(s *v1.PodSpec) {
	s.Containers[0].Resources.Limits = v1.ResourceList{"example.com/gpu": resource.MustParse("1")}
}

// mirrorsOf returns the plan of a policy for workloads in a cluster without pods.
func mirrorsOf(t *testing.T, policy *v1alpha1.ResourceSlack, workloads ...Workload) Plan {
	t.Helper()
	plan, err := Compute(policy, nodesOf(1, "n", "4", "16Gi"), nil, workloads, noon)
	must.Succeed(t, err)
	return plan
}

func TestMirrorsAreAddedToTheRate(t *testing.T) {
	nodes := nodesOf(2, "n", "4", "16Gi")
	// Four pods of (1, 4): 100% is four placeholders, one of them for the biggest pod.
	pods := podsOf(2, nodes, "p", "1", "4Gi")
	other := newWorkload("1")
	other.Name = "api"
	plan, err := Compute(newPolicy("100%", granularity(4)), nodes, pods, []Workload{newWorkload("20%"), other}, noon)
	must.Succeed(t, err)
	var got []string
	for _, group := range plan.Groups {
		purpose := "rate"
		if group.Mirror != nil {
			purpose = group.Mirror.String()
		}
		got = append(got, fmt.Sprintf("%d x %s/%s of %s", group.Count, group.Requests.Cpu(), group.Requests.Memory(), purpose))
	}
	want := []string{"1 x 1/4Gi of rate", "3 x 1/4Gi of rate", "1 x 1/4Gi of Deployment shop/api", "2 x 1/4Gi of Deployment shop/web"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// (4, 16) of the rate and 3 x (1, 4).
	if plan.Total.Cpu().String() != "7" || plan.Total.Memory().String() != "28Gi" || plan.Target.Cpu().String() != "4" ||
		!plan.MirrorsFeasible {
		t.Errorf("total %v, target %v, feasible %t", plan.Total, plan.Target, plan.MirrorsFeasible)
	}
}

// TestMirrorIsScheduledLikeItsWorkload checks that a mirror has all scheduling constraints of its workload
// but none of its containers, volumes and service account.
func TestMirrorIsScheduledLikeItsWorkload(t *testing.T) {
	w := newWorkload("2", antiAffine, gpu, func(s *v1.PodSpec) {
		s.NodeSelector = map[string]string{"disk": "ssd"}
		s.Tolerations = []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}}
		s.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: v1.LabelTopologyZone,
			WhenUnsatisfiable: v1.DoNotSchedule,
		}}
		s.PriorityClassName, s.ServiceAccountName, s.RuntimeClassName = "important", "web", new("sandbox")
		s.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 9100, HostPort: 9100}}
		s.Containers = append(s.Containers, v1.Container{Name: "proxy", Resources: v1.ResourceRequirements{Limits: list("500m", "1Gi")}})
		s.InitContainers = []v1.Container{{Name: "init", Resources: v1.ResourceRequirements{Requests: list("100m", "8Gi")}}}
		s.Volumes = []v1.Volume{{Name: "data"}}
	})
	policy := newPolicy("0")
	plan := mirrorsOf(t, policy, w)
	templates, buffers := capacityBuffers(policy, plan, "slack")
	if len(templates) != 1 || len(buffers) != 1 {
		t.Fatalf("%d templates, %d buffers", len(templates), len(buffers))
	}
	if templates[0].Namespace != "shop" || buffers[0].GetNamespace() != "shop" {
		t.Errorf("namespaces %s and %s, want shop", templates[0].Namespace, buffers[0].GetNamespace())
	}
	got := templates[0].Template
	workload := w.Template.Spec
	if diff := cmp.Diff([]any{
		workload.NodeSelector, workload.Affinity, workload.Tolerations, workload.TopologySpreadConstraints,
		workload.PriorityClassName, workload.RuntimeClassName,
	},
		[]any{
			got.Spec.NodeSelector, got.Spec.Affinity, got.Spec.Tolerations, got.Spec.TopologySpreadConstraints,
			got.Spec.PriorityClassName, got.Spec.RuntimeClassName,
		}); diff != "" {
		t.Error(diff)
	}
	if got.Labels["app"] != "web" || got.Labels[PlaceholderLabel] != "web" {
		t.Errorf("labels %v", got.Labels)
	}
	// CPU: 1 + 0.5, the limit of the second container; memory: max(4 + 1, init container 8).
	requests := got.Spec.Containers[0].Resources.Requests
	if len(got.Spec.Containers) != 1 || requests.Cpu().String() != "1500m" || requests.Memory().String() != "8Gi" {
		t.Errorf("containers %+v", got.Spec.Containers)
	}
	if device := got.Spec.Containers[0].Resources.Limits["example.com/gpu"]; device.Value() != 1 {
		t.Errorf("limits %v, want one device", got.Spec.Containers[0].Resources.Limits)
	}
	if ports := got.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].HostPort != 9100 {
		t.Errorf("ports %v, want the host port only", ports)
	}
	if got.Spec.ServiceAccountName != "" || got.Spec.Volumes != nil || got.Spec.Containers[0].Image != pauseImage ||
		got.Spec.Containers[0].Command != nil {
		t.Errorf("template has containers, volumes or the service account of the workload: %+v", got.Spec)
	}
	if owners := buffers[0].GetOwnerReferences(); len(owners) != 1 || owners[0].UID != policy.UID {
		t.Errorf("owners %v, want the policy", owners)
	}
}

// TestRequestsOfTemplate checks the defaults of the API server. Pod-level resources replace the sum over the containers.
func TestRequestsOfTemplate(t *testing.T) {
	requirements := func(requests, limits v1.ResourceList) *v1.ResourceRequirements {
		return &v1.ResourceRequirements{Requests: requests, Limits: limits}
	}
	onlyCPU := v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
	hugePages := func(amount string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceHugePagesPrefix + "2Mi": resource.MustParse(amount)}
	}
	for name, tc := range map[string]struct {
		pod           *v1.ResourceRequirements
		container     *v1.ResourceRequirements
		wantCPU       string
		wantMemory    string
		wantHugePages string
	}{
		"limits of a container":                {nil, requirements(onlyCPU, list("4", "8Gi")), "2", "8Gi", "0"},
		"requests of the pod":                  {requirements(list("3", "3Gi"), list("4", "8Gi")), requirements(list("2", "1Gi"), nil), "3", "3Gi", "0"},
		"limits of the pod without containers": {requirements(nil, list("4", "8Gi")), requirements(nil, nil), "4", "8Gi", "0"},
		// The container requests CPU only.
		"limits of the pod": {requirements(nil, list("4", "8Gi")), requirements(onlyCPU, nil), "2", "8Gi", "0"},
		// Huge pages are not overcommitted.
		"huge pages of the pod": {requirements(nil, hugePages("8Mi")), requirements(hugePages("2Mi"), hugePages("2Mi")), "0", "0", "8Mi"},
	} {
		w := newWorkload("1", func(s *v1.PodSpec) { s.Resources, s.Containers[0].Resources = tc.pod, *tc.container })
		got := resources.RequestsOfTemplate(&w.Template.Spec)
		pages := got[v1.ResourceHugePagesPrefix+"2Mi"]
		if got.Cpu().String() != tc.wantCPU || got.Memory().String() != tc.wantMemory || pages.String() != tc.wantHugePages {
			t.Errorf("%s: %s CPU, %s memory and %s huge pages, want %s, %s and %s", name, got.Cpu(), got.Memory(), &pages,
				tc.wantCPU, tc.wantMemory, tc.wantHugePages)
		}
	}
}

// TestMirrorOverhead checks that the overhead of a template is counted once: admission adds the overhead of a
// RuntimeClass to pods.
func TestMirrorOverhead(t *testing.T) {
	w := newWorkload("1", func(s *v1.PodSpec) { s.RuntimeClassName, s.Overhead = new("sandbox"), list("250m", "1Gi") })
	policy := newPolicy("0")
	templates, _ := capacityBuffers(policy, mirrorsOf(t, policy, w), "slack")
	spec := templates[0].Template.Spec
	requests := spec.Containers[0].Resources.Requests
	// CPU: 1 + 0.25; memory: 4 + 1.
	if requests.Cpu().String() != "1250m" || requests.Memory().String() != "5Gi" || spec.RuntimeClassName != nil || spec.Overhead != nil {
		t.Errorf("requests %v, RuntimeClass %v, overhead %v", requests, spec.RuntimeClassName, spec.Overhead)
	}
}

// TestMirrorAsDeployment checks that pods that mirror a workload are in the namespace of the controller,
// with anti-affinity to both namespaces.
func TestMirrorAsDeployment(t *testing.T) {
	w := newWorkload("2", antiAffine, func(s *v1.PodSpec) { s.PriorityClassName = "important" })
	policy := newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) { s.Backend = v1alpha1.BackendDeployment })
	got := deploymentBackend.objects(policy, mirrorsOf(t, policy, w), "slack")
	deployment, ok := got[len(got)-1].(*appsv1.Deployment)
	if !ok || len(got) != 2 || deployment.Namespace != "slack" || *deployment.Spec.Replicas != 2 {
		t.Fatalf("got %+v, want a PriorityClass and a Deployment", got)
	}
	spec := deployment.Spec.Template.Spec
	term := spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	if fmt.Sprint(term.Namespaces) != "[shop slack]" {
		t.Errorf("anti-affinity has namespaces %v, want shop and slack", term.Namespaces)
	}
	if spec.PriorityClassName != PriorityClassName {
		t.Errorf("priority class %s: pods of the workload would not preempt it", spec.PriorityClassName)
	}
	if len(w.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].Namespaces) > 0 {
		t.Error("the template of the workload was changed")
	}
}

// TestMirrorsShrinkAfterCoolDown checks that mirrors increase at once and decrease after the cool-down,
// that a changed annotation takes effect at once, and that a tracker resumes from existing mirrors.
func TestMirrorsShrinkAfterCoolDown(t *testing.T) {
	tracker := newTracker(t, newPolicy("0"), nil)
	count := func(after time.Duration, w ...Workload) int64 {
		tracker.SetWorkloads(w)
		plan := tracker.Next(noon.Add(after))
		return plan.placeholders()
	}
	scaled := func(slack string, replicas int64) Workload {
		w := newWorkload(slack)
		w.Replicas = replicas
		return w
	}
	tracker.Resume([]Group{{Name: newWorkload("").groupName(), Requests: list("1", "4Gi"), Count: 4}})
	for _, step := range []struct {
		after    time.Duration
		workload Workload
		want     int64
	}{
		{0, scaled("20%", 10), 4}, // resumed
		{599 * time.Second, scaled("20%", 10), 4},
		{600 * time.Second, scaled("20%", 10), 2},
		{601 * time.Second, scaled("20%", 50), 10},
		{602 * time.Second, scaled("20%", 0), 10},
		{603 * time.Second, scaled("10%", 50), 5},
		{604 * time.Second, scaled("0", 50), 0},
	} {
		if got := count(step.after, step.workload); got != step.want {
			t.Errorf("after %s, %s of %d: %d, want %d", step.after, step.workload.Slack, step.workload.Replicas, got, step.want)
		}
	}
	// In a cool-down the reason is the cool-down, with its end.
	tracker.SetWorkloads([]Workload{scaled("100%", 5)})
	tracker.Next(noon.Add(604 * time.Second))
	tracker.SetWorkloads([]Workload{scaled("100%", 2)})
	plan := tracker.Next(noon.Add(605 * time.Second))
	want := fmt.Sprintf("Deployment shop/web requires 2 placeholders, 5 are held until %s",
		noon.Add(1205*time.Second).UTC().Format(time.RFC3339))
	// The pool has no nodes, which is the first reason.
	if plan.CoolDown || len(plan.MirrorReasons) != 1 || plan.MirrorReasons[0] != want {
		t.Errorf("cool-down of the rate %t, reasons %q, want false and %q", plan.CoolDown, plan.MirrorReasons, want)
	}
	if count(605*time.Second, scaled("3", 1)) != 3 || count(606*time.Second) != 0 {
		t.Error("a deleted workload has placeholders")
	}
}

// TestLoopKeepsMirrors checks that mirrors keep their node exactly if the scheduling constraints of the
// workload permit it.
func TestLoopKeepsMirrors(t *testing.T) {
	hostname := func(n *v1.Node) { n.Labels[v1.LabelHostname] = n.Name }
	devices := func(n *v1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1") }
	nodes := append(nodesOf(2, "n", "16", "64Gi", hostname, devices), newNode("bare", "16", "64Gi", hostname))
	web := func(name, node string) *v1.Pod {
		return newPod(name, node, "1", "4Gi", func(p *v1.Pod) { p.Namespace, p.Labels = "shop", map[string]string{"app": "web"} })
	}
	type nodeByName = map[string]string
	names := func(w Workload) []string {
		return []string{w.groupName() + "-0", w.groupName() + "-1"}
	}
	for name, tc := range map[string]struct {
		workload     Workload
		pods         []*v1.Pod
		placed, want [2]string
	}{
		"unconstrained":               {newWorkload("2"), nil, [2]string{"n0", "n0"}, [2]string{"n0", "n0"}},
		"anti-affinity to each other": {newWorkload("2", antiAffine), nil, [2]string{"n0", "n0"}, [2]string{"n0", ""}},
		"anti-affinity to a pod":      {newWorkload("2", antiAffine), []*v1.Pod{web("w", "n1")}, [2]string{"n0", "n1"}, [2]string{"n0", ""}},
		"one device each":             {newWorkload("2", gpu), nil, [2]string{"n0", "n0"}, [2]string{"n0", ""}},
		"node without devices":        {newWorkload("2", gpu), nil, [2]string{"n0", "bare"}, [2]string{"n0", ""}},
		"a pod uses the device":       {newWorkload("2", gpu), []*v1.Pod{gpuPod("w", "n1")}, [2]string{"n0", "n1"}, [2]string{"n0", ""}},
		"node selector": {
			newWorkload("2", func(s *v1.PodSpec) { s.NodeSelector = nodeByName{"zone": "x"} }), nil,
			[2]string{"n0", "n1"},
			[2]string{"", ""},
		},
	} {
		loop, err := NewLoop(newPolicy("0"), "slack")
		must.Succeed(t, err)
		loop.SetWorkloads([]Workload{tc.workload})
		first, _ := loop.Next(nodes, nil, nil, noon)
		id := names(tc.workload)
		placed := placeOn(first, nodeByName{id[0]: tc.placed[0], id[1]: tc.placed[1]})
		got, _ := loop.Next(nodes, tc.pods, placed, noon.Add(time.Second))
		want := []string{id[0] + "=" + tc.want[0], id[1] + "=" + tc.want[1]}
		if tc.pods != nil && len(got) == 3 { // the first one covers the biggest pod
			got = got[1:]
		}
		if diff := cmp.Diff(want, assignments(got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if got[0].Namespace != "shop" {
			t.Errorf("%s: namespace %s, want shop", name, got[0].Namespace)
		}
	}
}

// TestDroppedClaims checks that the plan names volumes and resource claims that mirrors do not have, and
// remains feasible.
func TestDroppedClaims(t *testing.T) {
	claim := v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}}}
	set := newWorkload("1")
	set.Kind, set.VolumeClaimTemplates = "StatefulSet", []string{"www"}
	for name, tc := range map[string]struct {
		workload Workload
		want     string
	}{
		"none": {newWorkload("1", func(s *v1.PodSpec) { s.Volumes = []v1.Volume{{Name: "tmp"}} }), ""},
		"volume": {
			newWorkload("1", func(s *v1.PodSpec) { s.Volumes = []v1.Volume{claim} }),
			"Deployment shop/web: its placeholders are not bound to the nodes and zones of its volumes (data), which they do not have",
		},
		"volume of a StatefulSet": {set, "zones of its volumes (www), which"},
		"both": {newWorkload("1", func(s *v1.PodSpec) {
			s.Volumes, s.ResourceClaims = []v1.Volume{claim}, []v1.PodResourceClaim{{Name: "gpu"}}
		}), "volumes (data) and resource claims (gpu), which"},
	} {
		plan := mirrorsOf(t, newPolicy("0"), tc.workload)
		if reasons := strings.Join(plan.MirrorReasons, "; "); !strings.Contains(reasons, tc.want) || (reasons == "") != (tc.want == "") {
			t.Errorf("%s: reasons %q, want %q", name, reasons, tc.want)
		}
	}
}

func gpuPod(name, node string) *v1.Pod {
	return newPod(name, node, "1", "4Gi", func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	})
}

// TestPlaceable checks that placeholders are counted node by node, and mirrors only on nodes that match.
func TestPlaceable(t *testing.T) {
	nodes := append(nodesOf(2, "n", "2", "64Gi"), newNode("ssd", "2", "64Gi", label("pool", "db"), label("disk", "ssd")))
	tracker := newTracker(t, newPolicy("0"), nodes)
	// Three placeholders of 2 CPUs: node ssd fits one.
	tracker.SetWorkloads([]Workload{newWorkload("3", func(s *v1.PodSpec) {
		s.NodeSelector = map[string]string{"disk": "ssd"}
		s.Containers[0].Resources.Requests = list("2", "1Gi")
	})})
	if got := tracker.Capacity().Placeable(tracker.Next(noon), nil); got != 1 {
		t.Errorf("%d placeholders fit, want 1", got)
	}
}

// TestPlaceableWithAntiAffinity checks mirrors that exclude each other from a node: five nodes of any capacity
// fit five mirrors, less one for each node with a pod of the workload.
func TestPlaceableWithAntiAffinity(t *testing.T) {
	web := func(name, node string, changes ...func(*v1.Pod)) *v1.Pod {
		return newPod(name, node, "1", "1Gi", append([]func(*v1.Pod){func(p *v1.Pod) {
			p.Namespace, p.Labels = "shop", map[string]string{"app": "web"}
		}}, changes...)...)
	}
	zone := func(s *v1.PodSpec) {
		antiAffine(s)
		s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = v1.LabelTopologyZone
	}
	api := newWorkload("2", antiAffine) // has the labels of web
	api.Name = "api"
	for name, tc := range map[string]struct {
		workloads []Workload
		pods      []*v1.Pod
		want      int64
	}{
		"no anti-affinity":             {[]Workload{newWorkload("10")}, nil, 10},
		"one per node":                 {[]Workload{newWorkload("10", antiAffine)}, nil, 5},
		"pods of the workload":         {[]Workload{newWorkload("10", antiAffine)}, []*v1.Pod{web("a", "n0"), web("b", "n1")}, 3},
		"a pod that has finished":      {[]Workload{newWorkload("10", antiAffine)}, []*v1.Pod{web("a", "n0", succeeded)}, 5},
		"pods of another namespace":    {[]Workload{newWorkload("10", antiAffine)}, []*v1.Pod{smallPod("a", "n0")}, 5},
		"one per zone":                 {[]Workload{newWorkload("10", zone)}, nil, 2},
		"another mirror uses two of 5": {[]Workload{newWorkload("10", antiAffine), api}, nil, 5},
	} {
		tracker := newTracker(t, newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) { s.CoverBiggestPod = new(false) }), nil)
		for i, node := range nodesOf(5, "n", "16", "64Gi") {
			node.Labels[v1.LabelHostname], node.Labels[v1.LabelTopologyZone] = node.Name, fmt.Sprint("zone-", i%2)
			tracker.SetNode(node, noon)
		}
		tracker.SetWorkloads(tc.workloads)
		plan := tracker.Next(noon)
		if got := tracker.Capacity().Placeable(plan, tc.pods); got != tc.want {
			t.Errorf("%s: %d placeholders fit, want %d", name, got, tc.want)
		}
		if namespaces, all := plan.AntiAffinityNamespaces(); all || name != "no anti-affinity" && fmt.Sprint(namespaces) != "[shop]" {
			t.Errorf("%s: namespaces %v, all %t; want [shop], false", name, namespaces, all)
		}
	}
	everywhere := newWorkload("1", antiAffine, func(s *v1.PodSpec) {
		s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{}
	})
	if plan := mirrorsOf(t, newPolicy("0"), everywhere); true {
		if _, all := plan.AntiAffinityNamespaces(); !all {
			t.Error("a namespace selector: not all namespaces")
		}
	}
}

func succeeded(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }
