package kinds

// The rules for objects that affect slack planning.

var slackRule = object("resourceslack", fields{
	"spec": in(fields{
		"minRate": keep, "base": keep, "granularity": keep, "coverBiggestPod": keep,
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
		"scalableRef":    reference("apiGroup", nil),
	}),
	"status": in(fields{"replicas": keep, "podTemplateRef": in(fields{"name": named("podtemplate")})}),
})
