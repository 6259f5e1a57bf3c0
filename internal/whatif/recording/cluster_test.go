package recording

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
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Values with secret must not be in any snapshot, values with private must not be in a redacted one.
const (
	secret  = "hush-hush"
	private = "acme"
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

// generator generates a cluster.
type generator struct {
	*rapid.T
	objects []runtime.Object
	nodes   []string
}

func (g *generator) add(object runtime.Object) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	must.Succeed(g, err)
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	g.objects = append(g.objects, object)
}

// source returns the cluster as manifests.
func (g *generator) source(each func(string, []byte) error) error {
	for i, object := range g.objects {
		raw, err := json.Marshal(object)
		must.Succeed(g, err)
		if err := each(fmt.Sprintf("object %d", i), raw); err != nil {
			return err
		}
	}
	return nil
}

// oneOf returns one of the values.
func (g *generator) oneOf(label string, values ...string) string {
	return rapid.SampledFrom(values).Draw(g.T, label)
}

// sometimes returns true in one of four cases.
func (g *generator) sometimes(label string) bool { return rapid.IntRange(0, 3).Draw(g.T, label) == 0 }

func (g *generator) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("acme-uid-" + namespace + name), CreationTimestamp: metav1.NewTime(instant),
		Annotations:   map[string]string{v1.LastAppliedConfigAnnotation: secret, "acme.com/note": secret},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: secret}},
	}
}

// amounts returns an amount of millicores and of MiB, and 20 pods.
func amounts(cpu, memory int64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(20, resource.DecimalSI),
	}
}

func (g *generator) node(i int) {
	name := fmt.Sprintf("acme-node-%d", i)
	g.nodes = append(g.nodes, name)
	resources := amounts(rapid.Int64Range(2000, 8000).Draw(g.T, "cpu"), rapid.Int64Range(2000, 8000).Draw(g.T, "memory"))
	node := &v1.Node{ObjectMeta: g.meta("", name), Status: v1.NodeStatus{
		Capacity: resources, Allocatable: resources, Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: secret}},
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Message: secret}},
		Images:     []v1.ContainerImage{{Names: []string{g.oneOf("node image", images...)}, SizeBytes: 500 << 20}},
	}}
	node.Labels = map[string]string{
		v1.LabelHostname: name, v1.LabelTopologyZone: g.oneOf("zone", "acme-a", "acme-b"),
		rack: g.oneOf("rack", "acme-r1", "acme-r2"), slots: g.oneOf("slots", "2", "7", "11"),
	}
	if g.sometimes("tainted") {
		node.Spec.Taints = []v1.Taint{
			{
				Key: "acme.com/team", Value: g.oneOf("team", "acme-x", "acme-y"),
				Effect: v1.TaintEffect(g.oneOf("effect", "NoSchedule", "PreferNoSchedule")),
			},
		}
	}
	node.Spec.Unschedulable = g.sometimes("cordoned")
	g.add(node)
}

func (g *generator) selector(what string) *metav1.LabelSelector {
	if g.sometimes(what + " by expression") {
		return &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{
					Key: app, Operator: metav1.LabelSelectorOperator(g.oneOf("operator", "In", "NotIn")),
					Values: []string{g.oneOf(what, apps...)},
				},
			},
		}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{app: g.oneOf(what, apps...)}}
}

func (g *generator) nodeAffinity() *v1.NodeAffinity {
	requirement := rapid.SampledFrom([]v1.NodeSelectorRequirement{
		{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{"acme-a", "acme-none"}},
		{Key: rack, Operator: v1.NodeSelectorOpNotIn, Values: []string{"acme-r1"}},
		{Key: slots, Operator: v1.NodeSelectorOpGt, Values: []string{"3"}},
		{Key: slots, Operator: v1.NodeSelectorOpLt, Values: []string{"10"}},
		{Key: rack, Operator: v1.NodeSelectorOpExists},
	}).Draw(g.T, "requirement")
	terms := []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{requirement}}}
	if g.sometimes("by name") {
		terms = append(terms, v1.NodeSelectorTerm{
			MatchFields: []v1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{g.oneOf("named", g.nodes...)}},
			},
		})
	}
	if g.sometimes("required") {
		return &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
		Weight:     40,
		Preference: terms[0],
	}}}
}

func (g *generator) podTerms() (required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm) {
	term := v1.PodAffinityTerm{LabelSelector: g.selector("term"), TopologyKey: g.oneOf("topology", topologies...)}
	switch {
	case g.sometimes("namespaces"):
		term.Namespaces = []string{g.oneOf("of", namespaces...)}
	case g.sometimes("namespace selector"):
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: g.oneOf("of", namespaces...)}}
	}
	if g.sometimes("required") {
		return []v1.PodAffinityTerm{term}, nil
	}
	return nil, []v1.WeightedPodAffinityTerm{{Weight: 30, PodAffinityTerm: term}}
}

func (g *generator) pod(i int, node string) {
	namespace := g.oneOf("namespace", namespaces...)
	pod := &v1.Pod{ObjectMeta: g.meta(namespace, fmt.Sprintf("acme-pod-%d", i))}
	pod.Labels = map[string]string{app: g.oneOf("app", apps...)}
	pod.Spec = v1.PodSpec{
		NodeName: node, ServiceAccountName: secret, Hostname: secret, ImagePullSecrets: []v1.LocalObjectReference{{Name: secret}},
		Containers: []v1.Container{{
			Name: "acme-main", Image: g.oneOf("image", images...), Command: []string{secret}, Args: []string{secret},
			Env:          []v1.EnvVar{{Name: secret, Value: secret}},
			EnvFrom:      []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: secret}}}},
			VolumeMounts: []v1.VolumeMount{{Name: secret, MountPath: secret}},
			Resources: v1.ResourceRequirements{
				Requests: amounts(rapid.Int64Range(0, 900).Draw(g.T, "request"), rapid.Int64Range(0, 900).Draw(g.T, "memory request")),
			},
		}},
		Volumes: []v1.Volume{{Name: secret, VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: secret}}}},
	}
	delete(pod.Spec.Containers[0].Resources.Requests, v1.ResourcePods)
	if g.sometimes("port") {
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{
			{ContainerPort: 80, HostPort: 8080, HostIP: g.oneOf("address", "", "10.0.0.1", "10.0.0.2")},
		}
	}
	if g.sometimes("selects") {
		pod.Spec.NodeSelector = map[string]string{rack: g.oneOf("selected", "acme-r1", "acme-r2")}
	}
	if g.sometimes("tolerates") {
		pod.Spec.Tolerations = []v1.Toleration{
			{Key: "acme.com/team", Operator: v1.TolerationOpEqual, Value: g.oneOf("tolerated", "acme-x", "acme-y")},
		}
	}
	affinity := &v1.Affinity{}
	if g.sometimes("node affinity") {
		affinity.NodeAffinity = g.nodeAffinity()
	}
	if g.sometimes("pod affinity") {
		required, preferred := g.podTerms()
		affinity.PodAffinity = &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred,
		}
	}
	if g.sometimes("anti-affinity") {
		required, preferred := g.podTerms()
		affinity.PodAntiAffinity = &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred,
		}
	}
	pod.Spec.Affinity = affinity
	if g.sometimes("spreads") {
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: g.oneOf("over", topologies...), LabelSelector: g.selector("spread"),
			WhenUnsatisfiable: v1.UnsatisfiableConstraintAction(g.oneOf("else", "DoNotSchedule", "ScheduleAnyway")),
		}}
	}
	g.setOwner(pod)
	g.addVolume(pod)
	g.add(pod)
}

// setOwner makes the ReplicaSet of its namespace and app own a pod.
func (g *generator) setOwner(pod *v1.Pod) {
	if g.sometimes("bare") {
		return
	}
	owner := g.meta(pod.Namespace, pod.Labels[app])
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name, UID: owner.UID, Controller: new(true)},
	}
}

// addVolume adds a persistent or an ephemeral volume to some pods.
func (g *generator) addVolume(pod *v1.Pod) {
	if !g.sometimes("volume") {
		return
	}
	name := pod.Name + "-acme-data"
	claim := &v1.PersistentVolumeClaim{ObjectMeta: g.meta(pod.Namespace, name), Spec: v1.PersistentVolumeClaimSpec{
		VolumeName: "acme-pv-" + pod.Name, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		StorageClassName: new("acme-fast"),
		Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
	}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}}
	claim.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	volume := v1.Volume{Name: "acme-data"}
	if g.sometimes("ephemeral") {
		volume.Ephemeral = &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}
		claim.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
			Controller: new(true),
		}}
	} else {
		volume.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	g.add(claim)
	pv := &v1.PersistentVolume{ObjectMeta: g.meta("", claim.Spec.VolumeName), Spec: v1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: "acme-fast",
		ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource: v1.PersistentVolumeSource{
			CSI: &v1.CSIPersistentVolumeSource{
				Driver: "csi.example.com", VolumeHandle: "acme-handle", VolumeAttributes: map[string]string{secret: secret},
			},
		},
	}}
	if g.sometimes("zones") {
		pv.Labels = map[string]string{v1.LabelTopologyZone: g.oneOf("zones of the volume", "acme-a", "acme-b", "acme-a__acme-b")}
	} else {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{
			Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{
					Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn,
					Values: []string{g.oneOf("zone of the volume", "acme-a", "acme-b")},
				},
			}}}},
		}
	}
	g.add(pv)
}

// cluster generates a cluster and the load of its nodes.
func cluster(t *rapid.T) (*generator, load.Reading) {
	g := &generator{T: t}
	reading := load.Reading{Source: "Prometheus", Time: instant, Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		g.node(i)
		u := load.Utilization{Mean: rapid.Float64Range(0, 0.9).Draw(t, "mean"), StdDev: 0.1}
		reading.Nodes[g.nodes[i]] = load.Node{CPU: u, Memory: u, HasCPU: true, HasMemory: true}
	}
	for _, namespace := range namespaces {
		object := &v1.Namespace{ObjectMeta: g.meta("", namespace)}
		object.Labels = map[string]string{v1.LabelMetadataName: namespace}
		g.add(object)
		for _, name := range apps {
			g.add(&appsv1.ReplicaSet{
				ObjectMeta: g.meta(namespace, name),
				Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{app: name}}},
			})
		}
		g.add(&v1.Service{
			ObjectMeta: g.meta(namespace, "acme-service"), Spec: v1.ServiceSpec{
				Selector:     map[string]string{app: apps[0]},
				ExternalName: secret,
			},
		})
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "running") {
		g.pod(i, g.oneOf("node", g.nodes...))
	}
	for i := range 2 {
		g.pod(100+i, "")
	}
	return g, reading
}
