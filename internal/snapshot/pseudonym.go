package snapshot

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
)

// pseudonyms are what names are replaced by: the same name by the same pseudonym,
// wherever it is. They are made of a key that is kept nowhere.
type pseudonyms struct {
	key []byte
	// numeric are the keys of labels and taints that something compares as numbers.
	numeric map[string]bool
	// claims are the names of claims that Kubernetes makes up from the name of a pod
	// and of one of its volumes.
	claims map[string]string
	// clusters are the managed clusters. Their pseudonyms have the order of their
	// names, which decides where scores are equal.
	clusters map[string]string
}

// pseudonymBytes are enough that no two names get the same pseudonym: of a
// million names two do with a chance of one in 30 million.
const pseudonymBytes = 8

// lower is what names of objects may consist of.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (p *pseudonyms) hash(kind, name string) string {
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "%s\x00%s", kind, name)
	return lower.EncodeToString(mac.Sum(nil)[:pseudonymBytes])
}

// ordinary names say nothing about whose cluster it is, and mean something to
// Kubernetes.
var ordinary = map[string][]string{
	"namespace":         {v1.NamespaceDefault, "kube-system", "kube-public", "kube-node-lease"},
	"priorityclass":     {"system-cluster-critical", "system-node-critical"},
	"managedclusterset": {"default", "global"},
}

// name returns the pseudonym of the name of an object.
func (p *pseudonyms) name(kind, name string) string {
	if name == "" || slices.Contains(ordinary[kind], name) {
		return name
	}
	switch kind {
	case "managedcluster", "namespace": // a cluster's namespace has its name
		if pseudonym, ok := p.clusters[name]; ok {
			return pseudonym
		}
	case "persistentvolumeclaim":
		if pseudonym, ok := p.claims[name]; ok {
			return pseudonym
		}
	}
	return kind + "-" + p.hash(kind, name)
}

// image returns the pseudonym of an image as a container names it. The scheduler looks
// for the name with a tag among those that nodes have.
func (p *pseudonyms) image(name string) string {
	if name != "" && strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		name += ":latest"
	}
	return p.nodeImage(name)
}

// nodeImage returns the pseudonym of an image as a node names it.
func (p *pseudonyms) nodeImage(name string) string {
	if name == "" {
		return ""
	}
	return "image-" + p.hash("image", name) + ":redacted"
}

// address returns the pseudonym of an address, but for those that mean all or this
// machine.
func (p *pseudonyms) address(ip string) string {
	if ip == "" || ip == "0.0.0.0" || ip == "::" || ip == "127.0.0.1" || ip == "::1" {
		return ip
	}
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "address\x00%s", ip)
	sum := mac.Sum(nil)
	return fmt.Sprintf("fd00::%x:%x:%x:%x", sum[0:2], sum[2:4], sum[4:6], sum[6:8])
}

// standardKeys are keys of labels, taints and annotations that Kubernetes and
// Plimsoll give a meaning to.
var standardKeys = []string{
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
	clusterv1beta2.ClusterSetLabel, clusterv1beta1.PlacementLabel, clusterv1beta1.DecisionGroupNameLabel, clusterv1beta1.DecisionGroupIndexLabel,
}

// ourDomain is that of the labels and annotations that Plimsoll itself has.
const ourDomain = "plimsoll.dev/"

// labelKey returns the pseudonym of a key of labels or taints; those that everybody
// has stay.
func (p *pseudonyms) labelKey(key string) string {
	if key == "" || slices.Contains(standardKeys, key) || strings.HasPrefix(key, ourDomain) {
		return key
	}
	return "key-" + p.hash("key", key)
}

// zones separates the zones of a volume that is in several.
const zones = "__"

// integer is what can be compared as a number.
var integer = regexp.MustCompile(`^-?[0-9]+$`)

// labelValue returns the pseudonym of the value of a label or a taint. Where the
// value is the name of something, it is the pseudonym of that.
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
		parts := strings.Split(value, zones)
		for i, part := range parts {
			parts[i] = "value-" + p.hash("value", part)
		}
		return strings.Join(parts, zones)
	}
	return "value-" + p.hash("value", value)
}

// number numbers the managed clusters in the order of their names.
func (p *pseudonyms) number(clusters []string) {
	slices.Sort(clusters)
	p.clusters = make(map[string]string, len(clusters))
	for i, name := range clusters {
		p.clusters[name] = fmt.Sprintf("managedcluster-%06d", i+1)
	}
}
