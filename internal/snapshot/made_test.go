package snapshot

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// What must never be in a snapshot has "hush" in it, and what must not be in a
// redacted one "acme".
const (
	hush = "hush"
	acme = "acme"
)

var instant = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	rack  = "acme.com/rack"
	slots = "acme.com/slots"
	app   = "app"
)

var (
	topologies = []string{v1.LabelHostname, v1.LabelTopologyZone, rack}
	namespaces = []string{"default", "acme-shop", "acme-pay"}
	apps       = []string{"acme-web", "acme-db"}
	images     = []string{"registry.acme.com/web", "registry.acme.com/web:latest", "registry.acme.com/db:2"}
)

// maker makes a cluster up.
type maker struct {
	*rapid.T
	objects []runtime.Object
	nodes   []string
}

func (m *maker) add(object runtime.Object) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		m.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	m.objects = append(m.objects, object)
}

// source has the cluster as manifests.
func (m *maker) source(each func(string, []byte) error) error {
	for i, object := range m.objects {
		raw, err := json.Marshal(object)
		if err != nil {
			m.Fatal(err)
		}
		if err := each(fmt.Sprintf("object %d", i), raw); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) one(what string, of ...string) string { return rapid.SampledFrom(of).Draw(m.T, what) }

func (m *maker) perhaps(what string) bool { return rapid.IntRange(0, 3).Draw(m.T, what) == 0 }

func (m *maker) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("acme-uid-" + namespace + name),
		CreationTimestamp: metav1.NewTime(instant),
		Annotations:       map[string]string{lastApplied: hush, "acme.com/note": hush},
		ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: hush}},
	}
}

func amounts(cpu, memory int64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), v1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
		v1.ResourcePods: *resource.NewQuantity(20, resource.DecimalSI),
	}
}

func (m *maker) node(i int) {
	name := fmt.Sprintf("acme-node-%d", i)
	m.nodes = append(m.nodes, name)
	has := amounts(rapid.Int64Range(2000, 8000).Draw(m.T, "cpu"), rapid.Int64Range(2000, 8000).Draw(m.T, "memory"))
	node := &v1.Node{ObjectMeta: m.meta("", name), Status: v1.NodeStatus{
		Capacity: has, Allocatable: has, Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: hush}},
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Message: hush}},
		Images:     []v1.ContainerImage{{Names: []string{m.one("node image", images...)}, SizeBytes: 500 << 20}},
	}}
	node.Labels = map[string]string{
		v1.LabelHostname: name, v1.LabelTopologyZone: m.one("zone", "acme-a", "acme-b"),
		rack: m.one("rack", "acme-r1", "acme-r2"), slots: m.one("slots", "2", "7", "11"),
	}
	if m.perhaps("tainted") {
		node.Spec.Taints = []v1.Taint{{Key: "acme.com/team", Value: m.one("team", "acme-x", "acme-y"), Effect: v1.TaintEffect(m.one("effect", "NoSchedule", "PreferNoSchedule"))}}
	}
	node.Spec.Unschedulable = m.perhaps("cordoned")
	m.add(node)
}

func (m *maker) selector(what string) *metav1.LabelSelector {
	if m.perhaps(what + " by expression") {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: app, Operator: metav1.LabelSelectorOperator(m.one("operator", "In", "NotIn")), Values: []string{m.one(what, apps...)}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{app: m.one(what, apps...)}}
}

func (m *maker) nodeAffinity() *v1.NodeAffinity {
	requirement := rapid.SampledFrom([]v1.NodeSelectorRequirement{
		{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{"acme-a", "acme-none"}},
		{Key: rack, Operator: v1.NodeSelectorOpNotIn, Values: []string{"acme-r1"}},
		{Key: slots, Operator: v1.NodeSelectorOpGt, Values: []string{"3"}},
		{Key: slots, Operator: v1.NodeSelectorOpLt, Values: []string{"10"}},
		{Key: rack, Operator: v1.NodeSelectorOpExists},
	}).Draw(m.T, "requirement")
	terms := []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{requirement}}}
	if m.perhaps("by name") {
		terms = append(terms, v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{m.one("named", m.nodes...)}}}})
	}
	if m.perhaps("required") {
		return &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 40, Preference: terms[0]}}}
}

func (m *maker) podTerms() (required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm) {
	term := v1.PodAffinityTerm{LabelSelector: m.selector("term"), TopologyKey: m.one("topology", topologies...)}
	switch {
	case m.perhaps("namespaces"):
		term.Namespaces = []string{m.one("of", namespaces...)}
	case m.perhaps("namespace selector"):
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: m.one("of", namespaces...)}}
	}
	if m.perhaps("required") {
		return []v1.PodAffinityTerm{term}, nil
	}
	return nil, []v1.WeightedPodAffinityTerm{{Weight: 30, PodAffinityTerm: term}}
}

func (m *maker) pod(i int, node string) {
	namespace := m.one("namespace", namespaces...)
	pod := &v1.Pod{ObjectMeta: m.meta(namespace, fmt.Sprintf("acme-pod-%d", i))}
	pod.Labels = map[string]string{app: m.one("app", apps...)}
	pod.Spec = v1.PodSpec{
		NodeName: node, ServiceAccountName: hush, Hostname: hush, ImagePullSecrets: []v1.LocalObjectReference{{Name: hush}},
		Containers: []v1.Container{{
			Name: "acme-main", Image: m.one("image", images...), Command: []string{hush}, Args: []string{hush},
			Env:          []v1.EnvVar{{Name: hush, Value: hush}},
			EnvFrom:      []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: hush}}}},
			VolumeMounts: []v1.VolumeMount{{Name: hush, MountPath: hush}},
			Resources:    v1.ResourceRequirements{Requests: amounts(rapid.Int64Range(0, 900).Draw(m.T, "request"), rapid.Int64Range(0, 900).Draw(m.T, "memory request"))},
		}},
		Volumes: []v1.Volume{{Name: hush, VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: hush}}}},
	}
	delete(pod.Spec.Containers[0].Resources.Requests, v1.ResourcePods)
	if m.perhaps("port") {
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080, HostIP: m.one("address", "", "10.0.0.1", "10.0.0.2")}}
	}
	if m.perhaps("selects") {
		pod.Spec.NodeSelector = map[string]string{rack: m.one("selected", "acme-r1", "acme-r2")}
	}
	if m.perhaps("tolerates") {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "acme.com/team", Operator: v1.TolerationOpEqual, Value: m.one("tolerated", "acme-x", "acme-y")}}
	}
	affinity := &v1.Affinity{}
	if m.perhaps("node affinity") {
		affinity.NodeAffinity = m.nodeAffinity()
	}
	if m.perhaps("pod affinity") {
		required, preferred := m.podTerms()
		affinity.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	}
	if m.perhaps("anti-affinity") {
		required, preferred := m.podTerms()
		affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	}
	pod.Spec.Affinity = affinity
	if m.perhaps("spreads") {
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: m.one("over", topologies...), LabelSelector: m.selector("spread"),
			WhenUnsatisfiable: v1.UnsatisfiableConstraintAction(m.one("else", "DoNotSchedule", "ScheduleAnyway")),
		}}
	}
	m.owned(pod)
	m.volumes(pod)
	m.add(pod)
}

// owned gives a pod to the ReplicaSet of its namespace and app.
func (m *maker) owned(pod *v1.Pod) {
	if m.perhaps("bare") {
		return
	}
	owner := m.meta(pod.Namespace, pod.Labels[app])
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
}

// volumes gives a pod a claim, or a volume of which Kubernetes makes one.
func (m *maker) volumes(pod *v1.Pod) {
	if !m.perhaps("volume") {
		return
	}
	name := pod.Name + "-acme-data"
	claim := &v1.PersistentVolumeClaim{ObjectMeta: m.meta(pod.Namespace, name), Spec: v1.PersistentVolumeClaimSpec{
		VolumeName: "acme-pv-" + pod.Name, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: new("acme-fast"),
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
	}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}}
	claim.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	volume := v1.Volume{Name: "acme-data"}
	if m.perhaps("ephemeral") {
		volume.Ephemeral = &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)}}
	} else {
		volume.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	m.add(claim)
	pv := &v1.PersistentVolume{ObjectMeta: m.meta("", claim.Spec.VolumeName), Spec: v1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: "acme-fast",
		ClaimRef:               &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "acme-handle", VolumeAttributes: map[string]string{hush: hush}}},
	}}
	if m.perhaps("zones") {
		pv.Labels = map[string]string{v1.LabelTopologyZone: m.one("zones of the volume", "acme-a", "acme-b", "acme-a__acme-b")}
	} else {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{m.one("zone of the volume", "acme-a", "acme-b")}},
		}}}}}
	}
	m.add(pv)
}

// cluster makes a cluster up, and the load of its nodes.
func cluster(t *rapid.T) (*maker, load.Reading) {
	m := &maker{T: t}
	reading := load.Reading{Source: "Prometheus", Time: instant, Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		m.node(i)
		u := load.Utilization{Mean: rapid.Float64Range(0, 0.9).Draw(t, "mean"), StdDev: 0.1}
		reading.Nodes[m.nodes[i]] = load.Node{CPU: u, Memory: u, HasCPU: true, HasMemory: true}
	}
	for _, namespace := range namespaces {
		object := &v1.Namespace{ObjectMeta: m.meta("", namespace)}
		object.Labels = map[string]string{v1.LabelMetadataName: namespace}
		m.add(object)
		for _, name := range apps {
			m.add(&appsv1.ReplicaSet{ObjectMeta: m.meta(namespace, name), Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{app: name}}}})
		}
		m.add(&v1.Service{ObjectMeta: m.meta(namespace, "acme-service"), Spec: v1.ServiceSpec{Selector: map[string]string{app: apps[0]}, ExternalName: hush}})
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "running") {
		m.pod(i, m.one("node", m.nodes...))
	}
	for i := range 2 {
		m.pod(100+i, "")
	}
	return m, reading
}
