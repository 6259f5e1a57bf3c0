package snapshot

import "strings"

// The rules for objects that affect slack planning.

var slackRule = object("resourceslack", fields{
	"spec": in(fields{
		"minRate": keep, "allowHighRate": keep, "base": keep, "granularity": keep, "coverBiggestPod": keep,
		"maxPlaceholders": keep, "backend": keep, "minimum": keep, "maximum": keep, "schedules": keep, "provisioningStrategy": keep,
		"recommend":         keep,
		"spread":            in(fields{"topologyKey": key, "minPerDomain": keep}),
		"pool":              in(fields{"nodeSelector": labels, "tolerations": tolerations, "devices": keep}),
		"mirrors":           in(fields{"namespaceSelector": labelSelector, "maxPerWorkload": keep, "maxPerNamespace": keep}),
		"priorityClassName": named("priorityclass"),
	}),
})

var bufferRule = object("capacitybuffer", fields{
	"spec": in(fields{
		"replicas": keep, "percentage": keep, "limits": keep, "provisioningStrategy": keep,
		"podTemplateRef": in(fields{"name": named("podtemplate")}),
		"scalableRef":    target,
	}),
	"status": in(fields{"replicas": keep, "podTemplateRef": in(fields{"name": named("podtemplate")})}),
})

// target is the rule for the scalable object of a buffer.
func target(value any, p *pseudonyms) (any, bool) {
	kept, ok := fields{"apiGroup": keep, "kind": keep, "name": keep}.rule(value, p)
	if !ok || p == nil {
		return kept, ok
	}
	out := kept.(map[string]any)
	kind, _ := out["kind"].(string)
	name, _ := out["name"].(string)
	out["name"] = p.name(strings.ToLower(kind), name)
	return out, true
}
