package record

import (
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// kube-state-metrics replaces characters that names of Prometheus labels must not have by underscores: the label
// topology.kubernetes.io/zone becomes label_topology_kubernetes_io_zone, and the resource nvidia.com/gpu nvidia_com_gpu.

var (
	invalidCharacter = regexp.MustCompile(`[^a-zA-Z0-9_]`)
	capital          = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// exported returns the name under which the key of a label is exported.
func exported(key string) string {
	return strings.ToLower(capital.ReplaceAllString(invalidCharacter.ReplaceAllString(key, "_"), "${1}_${2}"))
}

// knownKeys are the keys of labels that are restored without configuration, in addition to kinds.StandardKeys.
var knownKeys = []string{
	"app.kubernetes.io/created-by", "k8s-app", "helm.sh/chart", "karpenter.sh/nodepool", "karpenter.sh/capacity-type",
	"eks.amazonaws.com/nodegroup", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-nodepool", "cloud.google.com/gke-spot",
	"kubernetes.azure.com/agentpool", "kubernetes.azure.com/mode",
}

// labelKeys restores the keys of labels.
type labelKeys struct {
	known map[string]string
	// doubtful has the keys that were kept as exported although they contain an underscore.
	doubtful map[string]bool
}

func newLabelKeys(configured []string) *labelKeys {
	k := &labelKeys{known: map[string]string{}, doubtful: map[string]bool{}}
	for _, key := range slices.Concat(kinds.StandardKeys, knownKeys, configured) {
		k.known[exported(key)] = key
	}
	return k
}

// maxDoubtful bounds the number of keys that are remembered.
const maxDoubtful = 1000

// restore returns the key of a label that is exported under a name.
func (k *labelKeys) restore(name string) string {
	if key, ok := k.known[name]; ok {
		return key
	}
	if strings.Contains(name, "_") && len(k.doubtful) < maxDoubtful {
		k.doubtful[name] = true
	}
	return name
}

// labels returns the labels in a series whose names have a prefix, such as label_, without those whose exported key is too long for one.
func (k *labelKeys) labels(metric model.Metric, prefix string) map[string]string {
	out := map[string]string{}
	for name, value := range metric {
		if name, ok := strings.CutPrefix(string(name), prefix); ok {
			if key := k.restore(name); len(validation.IsQualifiedName(key)) == 0 {
				out[key] = string(value)
			}
		}
	}
	return out
}

// domain matches the exported name of an extended resource: a domain, a top-level domain and a name.
var domain = regexp.MustCompile(`^([a-z0-9_]+)_(com|io|org|net|dev|ai|cloud|sh)_([a-zA-Z0-9_]+)$`)

// resourceName restores the name of a resource. Nodes and pods have the same name for a resource, even if it is not
// the original one.
func resourceName(name string) v1.ResourceName {
	switch name {
	case "cpu", "memory", "pods", "storage":
		return v1.ResourceName(name)
	case "ephemeral_storage":
		return v1.ResourceEphemeralStorage
	}
	for _, prefix := range []string{v1.ResourceHugePagesPrefix, v1.ResourceAttachableVolumesPrefix} {
		if rest, ok := strings.CutPrefix(name, strings.ReplaceAll(prefix, "-", "_")); ok {
			return v1.ResourceName(prefix + strings.ReplaceAll(rest, "_", "-"))
		}
	}
	if parts := domain.FindStringSubmatch(name); parts != nil {
		return v1.ResourceName(strings.ReplaceAll(parts[1], "_", "-") + "." + parts[2] + "/" + strings.ReplaceAll(parts[3], "_", "-"))
	}
	// Any other name is that of a device with another domain, such as rdma/hca_shared.
	if domain, rest, ok := strings.Cut(name, "_"); ok && domain != "" && rest != "" {
		return v1.ResourceName(domain + "/" + strings.ReplaceAll(rest, "_", "-"))
	}
	return v1.ResourceName(name)
}
