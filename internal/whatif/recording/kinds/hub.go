package kinds

import (
	"encoding/json"
	"strings"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// The rules for objects that affect placements.

var (
	clusterSelector = objectOf(fields{
		"labelSelector": labelSelector,
		"claimSelector": objectOf(fields{"matchExpressions": list(requirement)}),
		"celSelector":   keep,
	})
	clusterTaint = keyed("key", fields{"effect": keep, "timeAdded": keep})
)

var managedClusterRule = object("managedcluster", fields{
	"metadata": clusterMetadata,
	"spec":     objectOf(fields{"hubAcceptsClient": keep, "leaseDurationSeconds": keep, "taints": list(clusterTaint)}),
	"status": objectOf(fields{
		"capacity": keep, "allocatable": keep, "version": keep,
		"conditions":    condition("HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"),
		"clusterClaims": list(keyed("name", nil)),
	}),
})

// clusterMetadata is the rule for the metadata of clusters. Unless names are replaced, it keeps all
// annotations except copies of objects, because CEL expressions may read them.
func clusterMetadata(value any, p *pseudonyms) (any, bool) {
	kept, ok := metadata("managedcluster", fields{capacityv1alpha1.AnnotationLimit: inJSON(keep)}).rule(value, p)
	if !ok || p != nil {
		return kept, ok
	}
	if all, ok := value.(map[string]any)["annotations"].(map[string]any); ok {
		annotations := make(map[string]any, len(all))
		for name, value := range all {
			if name != lastApplied {
				annotations[name] = value
			}
		}
		kept.(map[string]any)["annotations"] = annotations
	}
	return kept, true
}

var clusterSetRule = object("managedclusterset", fields{
	"spec": objectOf(fields{"clusterSelector": objectOf(fields{"selectorType": keep, "labelSelector": labelSelector})}),
})

// bindingRule has the rules for bindings, which have the name of their set.
var bindingRule = object("managedclusterset", fields{
	"spec": objectOf(fields{"clusterSet": named("managedclusterset")}),
})

var addOnScoreRule = object("addonplacementscore", fields{
	"status": objectOf(fields{"scores": list(objectOf(fields{"name": named("score"), "value": keep})), "validUntil": keep}),
})

var placementRule = object("placement", fields{
	"metadata": objectOf(metadata("placement", fields{v1beta1.AnnotationWorkload: workloadAnnotation}).plus(fields{"generation": keep})),
	"status": objectOf(fields{
		"conditions": conditionWith(fields{"observedGeneration": keep}, clusterv1beta1.PlacementConditionSatisfied),
	}),
	"spec": objectOf(fields{
		"workload":         objectOf(workloadSpec),
		"clusterSets":      list(named("managedclusterset")),
		"numberOfClusters": keep, "sortBy": keep, "scoreRateLimit": keep,
		"predicates": list(objectOf(fields{"requiredClusterSelector": clusterSelector})),
		"prioritizerPolicy": objectOf(fields{
			"mode": keep,
			"configurations": list(objectOf(fields{
				"name": keep, "weight": keep,
				"scoreCoordinate": objectOf(fields{
					"type": keep, "builtIn": keep,
					"addOn": objectOf(fields{"resourceName": named("addonplacementscore"), "scoreName": named("score")}),
				}),
			})),
		}),
		"spreadPolicy": objectOf(fields{"spreadConstraints": list(objectOf(fields{
			"topologyKey": key, "topologyKeyType": keep, "maxSkew": keep, "whenUnsatisfiable": keep,
		}))}),
		"tolerations": tolerations,
		"decisionStrategy": objectOf(fields{"groupStrategy": objectOf(fields{
			"clustersPerDecisionGroup": keep,
			"decisionGroups": list(objectOf(fields{
				"groupName":            text(func(p *pseudonyms, name string) string { return p.labelValue("", name) }),
				"groupClusterSelector": clusterSelector,
			})),
		})}),
	}),
})

var decisionRule = object("placementdecision", fields{
	"metadata": objectOf(metadata("placementdecision", fields{v1beta1.AnnotationReplicas: inJSON(byCluster)})),
	"status": objectOf(
		fields{"decisions": list(objectOf(fields{"clusterName": named("managedcluster"), "score": keep, "reason": reason}))},
	),
})

// reason is the rule for the reason of a decision, which may contain any names.
func reason(value any, p *pseudonyms) (any, bool) {
	if p != nil {
		return "", true // The field is required.
	}
	return value, true
}

// byCluster is the rule for an object whose fields are named after clusters.
func byCluster(value any, p *pseudonyms) (any, bool) {
	object, ok := value.(map[string]any)
	if !ok || p == nil {
		return value, ok
	}
	out := make(map[string]any, len(object))
	for cluster, value := range object {
		out[p.name("managedcluster", cluster)] = value
	}
	return out, true
}

// capacityNamespace has the rules for the namespace and the name of a workload in a ClusterCapacity.
var capacityNamespace = fields{"namespace": named("namespace"), "name": named("workload")}

var clusterCapacityRule = object("clustercapacity", fields{
	"status": objectOf(fields{
		"cluster": named("namespace"), // of the object
		"classes": list(objectOf(fields{
			"labels": labels, "variousLabels": list(key), "taints": list(keyed("key", fields{"effect": keep})),
		})),
		"scaleUp": list(objectOf(fields{
			"pool": named("pool"), "class": keep, "free": keep, "maxNodes": keep, "bootSeconds": keep, "pricePerHour": keep,
		})),
		"quotas":     list(objectOf(capacityNamespace.plus(fields{"left": keep}))),
		"recent":     list(objectOf(capacityNamespace.plus(fields{"pods": keep}))),
		"observedAt": keep, "nodes": keep, "groups": keep, "hostPorts": keep, "slack": keep,
	}),
})

var workloadSpec = fields{
	"template": podsOrWork, "ref": objectOf(fields{"kind": keep, "name": named("workload")}),
	"replicas": keep, "divide": keep, "requireFit": keep,
}

// workloadAnnotation is the rule for a workload in an annotation, which no API server checks: a text with unknown fields, which is not
// valid, is replaced by another such text.
func workloadAnnotation(value any, p *pseudonyms) (any, bool) {
	text, _ := value.(string)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&v1beta1.WorkloadSpec{}) != nil {
		return "invalid", true
	}
	return inJSON(objectOf(workloadSpec))(text, p)
}

// pods is the rule for an object with pods, or for the metadata and spec of a pod template. It keeps nothing of other objects, such as
// Secrets.
func pods(value any, p *pseudonyms) (any, bool) {
	given, _ := value.(map[string]any)
	kind, _ := given["kind"].(string)
	rules := fields{}
	switch kind {
	case "", "Pod":
		rules = object("workload", fields{"spec": podSpec})
	case "PodTemplate":
		rules = object("workload", fields{"template": template})
	case "Deployment", "ReplicaSet", "StatefulSet", "Job":
		rules = workload("workload")
	}
	return rules.rule(value, p)
}

var manifestWorkRule = object("workload", fields{
	"spec": objectOf(fields{"workload": objectOf(fields{"manifests": list(pods)})}),
})

// podsOrWork is the rule for an object with pods or a ManifestWork.
func podsOrWork(value any, p *pseudonyms) (any, bool) {
	if given, _ := value.(map[string]any); given["kind"] == "ManifestWork" {
		return manifestWorkRule.rule(value, p)
	}
	return pods(value, p)
}
