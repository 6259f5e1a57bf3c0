package kinds

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// dropped has the fields that a recording does not keep, at any depth: what may be secret, and what is large or changes often and does not
// affect scheduling. Keys of labels and names of resources are no fields.
var dropped = sets.New(strings.Fields(`
	resourceVersion selfLink generateName finalizers deletionGracePeriodSeconds
	env envFrom args command workingDir lifecycle livenessProbe readinessProbe startupProbe volumeMounts volumeDevices
	terminationMessagePath terminationMessagePolicy imagePullPolicy imagePullSecrets securityContext
	serviceAccount serviceAccountName automountServiceAccountToken enableServiceLinks ephemeralContainers
	dnsPolicy dnsConfig hostAliases hostname subdomain
	message lastHeartbeatTime lastProbeTime state lastState containerID imageID user hostIPs podIP podIPs
	addresses daemonEndpoints machineID systemUUID bootID runtimeHandlers volumesInUse volumesAttached
	externalName parameters volumeAttributes mountOptions data managedClusterClientConfigs resourceStatus`)...)

// files has the sources of volumes that no node and no claim limits. Such volumes are dropped: each pod has one with a token.
// Volumes on the disk of the node are kept: they keep autoscalers from removing it.
var files = []string{"configMap", "secret", "projected", "downwardAPI"}

// ownAnnotation matches annotations of Kubernetes, Open Cluster Management and Plimsoll, and the one of Karpenter that keeps nodes.
// Annotations of other programs are dropped: they are large, change often and may have anything. Only ManagedClusters keep them, because
// expressions of placements may read them.
var ownAnnotation = regexp.MustCompile(
	`^([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io|x-k8s\.io|open-cluster-management\.io|plimsoll\.dev)/|^karpenter\.sh/do-not-disrupt$`)

// labelMaps has the fields whose keys are the keys of labels or annotations.
var labelMaps = sets.New("labels", "annotations", "matchLabels", "nodeSelector", "selector")

// trim returns the part of a value in a field that a recording keeps.
func (k *Kind) trim(field string, value any) any {
	switch value := value.(type) {
	case string: // an annotation may be a JSON object
		if object := parse(value); object != nil {
			if kept := k.trim(field, object); !reflect.DeepEqual(kept, any(object)) {
				return format(kept)
			}
		}
	case []any:
		out := make([]any, 0, len(value))
		for _, item := range value {
			object, _ := item.(map[string]any)
			isFile := func(source string) bool { return object[source] != nil }
			if field != "volumes" || !slices.ContainsFunc(files, isFile) {
				out = append(out, k.trim(field+"[]", item))
			}
		}
		return out
	case map[string]any:
		return k.trimObject(field, value)
	}
	return value
}

// trimObject returns the part of an object in a field that a recording keeps.
func (k *Kind) trimObject(field string, object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	if (field == "template" || field == "manifests[]") && isForeign(object) {
		return out
	}
	for name, item := range object {
		switch {
		case field == "annotations" && !k.keepsAnnotation(name):
		case name == "managedFields" && setsNode(item):
			out[name] = []any{map[string]any{"fieldsV1": map[string]any{"f:spec": map[string]any{"f:nodeName": map[string]any{}}}}}
		case !isField(field), name != "managedFields" && !dropped.Has(name):
			out[name] = k.trim(name, item)
		}
	}
	return out
}

// keepsAnnotation reports whether a recording keeps an annotation.
func (k *Kind) keepsAnnotation(key string) bool {
	return key != v1.LastAppliedConfigAnnotation && (k.Kind == "ManagedCluster" || ownAnnotation.MatchString(key))
}

// isField reports whether the keys of an object in a field are names of fields: not of labels, resources or clusters.
func isField(field string) bool {
	return !labelMaps.Has(field) && !known().amounts.Has(field) && field != byCluster
}

// setsNode reports whether one of the managed fields of a pod says that its creator set its node.
func setsNode(managedFields any) bool {
	entries, _ := managedFields.([]any)
	return slices.ContainsFunc(entries, func(entry any) bool {
		object, _ := entry.(map[string]any)
		_, found, _ := unstructured.NestedFieldNoCopy(object, "fieldsV1", "f:spec", "f:nodeName")
		return found
	})
}

// isForeign reports whether an embedded object is of none of the kinds, such as a Secret.
func isForeign(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	return kind != "" && !slices.ContainsFunc(All, func(k *Kind) bool { return k.Kind == kind })
}

// parse returns the JSON object in a text, nil if the text is none.
func parse(text string) (object map[string]any) {
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &object) != nil {
		return nil
	}
	return object
}

// format returns a value from JSON as text.
func format(value any) string {
	raw, _ := json.Marshal(value) // cannot fail
	return string(raw)
}
