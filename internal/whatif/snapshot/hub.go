package snapshot

// The rules for objects that affect placements.

var (
	clusterSelector = in(fields{
		"labelSelector": labelSelector,
		"claimSelector": in(fields{"matchExpressions": list(requirement)}),
		"celSelector":   keep,
	})
	clusterTaint = keyed("key", fields{"effect": keep, "timeAdded": keep})
)

var managedClusterRule = object("managedcluster", fields{
	"metadata": clusterMetadata,
	"spec":     in(fields{"hubAcceptsClient": keep, "leaseDurationSeconds": keep, "taints": list(clusterTaint)}),
	"status": in(fields{
		"capacity": keep, "allocatable": keep, "version": keep,
		"conditions":    condition("HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"),
		"clusterClaims": list(keyed("name", nil)),
	}),
})

// clusterMetadata is the rule for the metadata of clusters. Unless names are replaced, it keeps all
// annotations except copies of objects, because CEL expressions may read them.
func clusterMetadata(value any, p *pseudonyms) (any, bool) {
	kept, ok := object("managedcluster", nil)["metadata"](value, p)
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
	"spec": in(fields{"clusterSelector": in(fields{"selectorType": keep, "labelSelector": labelSelector})}),
})

// bindingRule has the rules for bindings, which have the name of their set.
var bindingRule = object("managedclusterset", fields{
	"spec": in(fields{"clusterSet": named("managedclusterset")}),
})

var addOnScoreRule = object("addonplacementscore", fields{
	"status": in(fields{"scores": list(in(fields{"name": named("score"), "value": keep})), "validUntil": keep}),
})

var placementRule = object("placement", fields{
	"spec": in(fields{
		"clusterSets":      list(named("managedclusterset")),
		"numberOfClusters": keep, "sortBy": keep, "scoreRateLimit": keep,
		"predicates": list(in(fields{"requiredClusterSelector": clusterSelector})),
		"prioritizerPolicy": in(fields{
			"mode": keep,
			"configurations": list(in(fields{
				"name": keep, "weight": keep,
				"scoreCoordinate": in(fields{
					"type": keep, "builtIn": keep,
					"addOn": in(fields{"resourceName": named("addonplacementscore"), "scoreName": named("score")}),
				}),
			})),
		}),
		"spreadPolicy": in(fields{"spreadConstraints": list(in(fields{
			"topologyKey": key, "topologyKeyType": keep, "maxSkew": keep, "whenUnsatisfiable": keep,
		}))}),
		"tolerations": tolerations,
		"decisionStrategy": in(fields{"groupStrategy": in(fields{
			"clustersPerDecisionGroup": keep,
			"decisionGroups": list(in(fields{
				"groupName":            text(func(p *pseudonyms, name string) string { return p.labelValue("", name) }),
				"groupClusterSelector": clusterSelector,
			})),
		})}),
	}),
})

var decisionRule = object("placementdecision", fields{
	"status": in(fields{"decisions": list(in(fields{"clusterName": named("managedcluster"), "score": keep, "reason": reason}))}),
})

// reason is the rule for the reason of a decision, which may contain any names.
func reason(value any, p *pseudonyms) (any, bool) {
	if p != nil {
		return "", true // The field is required.
	}
	return value, true
}
