package kinds

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
)

// pseudonyms replaces names by pseudonyms. A name has the same pseudonym everywhere. Pseudonyms are
// derived from a key that is not stored.
type pseudonyms struct {
	key []byte
	// numeric has the keys of labels and taints whose values are compared as numbers.
	numeric map[string]bool
	// claims has the names of the claims of ephemeral volumes, which Kubernetes derives from the
	// names of the pod and the volume.
	claims map[string]string
	// clusters has the pseudonyms of managed clusters. They keep the order of the names, which
	// breaks ties between scores.
	clusters map[string]string
}

// pseudonymBytes is the length of hashes. For a million names, the probability of a collision is one in
// 30 million.
const pseudonymBytes = 8

// lower encodes hashes with characters that names of objects may have.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hash returns the pseudonym of a name of a kind, without a prefix.
func (p *pseudonyms) hash(kind, name string) string {
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "%s\x00%s", kind, name)
	return lower.EncodeToString(mac.Sum(nil)[:pseudonymBytes])
}

// standardNames has names with a meaning in Kubernetes. They do not identify a cluster and are kept.
var standardNames = map[string][]string{
	"namespace":         {v1.NamespaceDefault, "kube-system", "kube-public", "kube-node-lease"},
	"priorityclass":     {"system-cluster-critical", "system-node-critical"},
	"managedclusterset": {"default", "global"},
	"clustercapacity":   {capacityv1alpha1.Name},
}

// name returns the pseudonym of the name of an object.
func (p *pseudonyms) name(kind, name string) string {
	if name == "" || slices.Contains(standardNames[kind], name) {
		return name
	}
	switch kind {
	case "managedcluster", "namespace": // The namespace of a cluster has its name.
		if pseudonym, ok := p.clusters[name]; ok {
			return pseudonym
		}
	case "persistentvolumeclaim":
		if pseudonym, ok := p.claims[name]; ok {
			return pseudonym
		}
	case "deployment", "podtemplate": // A ClusterCapacity names workloads without their kinds.
		kind = "workload"
	}
	return kind + "-" + p.hash(kind, name)
}

// image returns the pseudonym of the image of a container. The default tag is added, because
// kube-scheduler compares it with the images of nodes, which have tags.
func (p *pseudonyms) image(name string) string {
	if name != "" && strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		name += ":latest"
	}
	return p.nodeImage(name)
}

// nodeImage returns the pseudonym of an image of a node.
func (p *pseudonyms) nodeImage(name string) string {
	if name == "" {
		return ""
	}
	return "image-" + p.hash("image", name) + ":redacted"
}

// address returns the pseudonym of an IP address. Wildcard and loopback addresses are kept.
func (p *pseudonyms) address(ip string) string {
	if ip == "" || ip == "0.0.0.0" || ip == "::" || ip == "127.0.0.1" || ip == "::1" {
		return ip
	}
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "address\x00%s", ip)
	sum := mac.Sum(nil)
	return fmt.Sprintf("fd00::%x:%x:%x:%x", sum[0:2], sum[2:4], sum[4:6], sum[6:8])
}

// StandardKeys has keys of labels, taints and annotations with a meaning in Kubernetes or Plimsoll.
var StandardKeys = []string{
	v1.LabelHostname, v1.LabelOSStable, v1.LabelArchStable, v1.LabelMetadataName,
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch", v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelWindowsBuild,
	v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/worker",
	"node.kubernetes.io/exclude-from-external-load-balancers",
	v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, v1.TaintNodeMemoryPressure, v1.TaintNodeDiskPressure,
	v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable, v1.TaintNodeOutOfService,
	"node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/component",
	"app.kubernetes.io/part-of", "app.kubernetes.io/managed-by",
	"pod-template-hash", "pod-template-generation", "controller-revision-hash", "controller-uid", "job-name",
	"apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name",
	"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index",
	clusterv1beta2.ClusterSetLabel, clusterv1beta1.PlacementLabel,
	clusterv1beta1.DecisionGroupNameLabel, clusterv1beta1.DecisionGroupIndexLabel,
}

// plimsollPrefix is the prefix of the labels and annotations of Plimsoll.
const plimsollPrefix = "plimsoll.dev/"

// labelKey returns the pseudonym of the key of a label or a taint. Standard keys are kept.
func (p *pseudonyms) labelKey(key string) string {
	if key == "" || slices.Contains(StandardKeys, key) || strings.HasPrefix(key, plimsollPrefix) {
		return key
	}
	return "key-" + p.hash("key", key)
}

// zoneSeparator separates the zones of a volume with several zones.
const zoneSeparator = "__"

// integer matches values that can be compared as numbers.
var integer = regexp.MustCompile(`^-?[0-9]+$`)

// labelValue returns the pseudonym of the value of a label or a taint. If the value is the name of an
// object, it is the pseudonym of the object's name.
func (p *pseudonyms) labelValue(key, value string) string {
	switch {
	case value == "":
		return ""
	case p.numeric[key] && integer.MatchString(value):
		return value
	}
	switch key {
	case v1.LabelHostname:
		return p.name("node", value)
	case v1.LabelMetadataName:
		return p.name("namespace", value)
	case clusterv1beta2.ClusterSetLabel:
		return p.name("managedclusterset", value)
	case clusterv1beta1.PlacementLabel:
		return p.name("placement", value)
	case clusterv1beta1.DecisionGroupIndexLabel:
		return value
	case v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaRegion:
		parts := strings.Split(value, zoneSeparator)
		for i, part := range parts {
			parts[i] = "value-" + p.hash("value", part)
		}
		return strings.Join(parts, zoneSeparator)
	}
	return "value-" + p.hash("value", value)
}

// numberClusters sets the pseudonyms of managed clusters, in the order of their names.
func (p *pseudonyms) numberClusters(clusters []string) {
	slices.Sort(clusters)
	p.clusters = make(map[string]string, len(clusters))
	for i, name := range clusters {
		p.clusters[name] = fmt.Sprintf("managedcluster-%06d", i+1)
	}
}
