package kinds

// The rules for objects that affect slack planning.

var slackRule = object("resourceslack", fields{
	"spec": objectOf(fields{
		"minRate": keep, "base": keep, "granularity": keep, "coverBiggestPod": keep,
		"maxPlaceholders": keep, "backend": keep, "minimum": keep, "maximum": keep, "schedules": keep, "provisioningStrategy": keep,
		"recommend":         keep,
		"spread":            objectOf(fields{"topologyKey": key, "minPerDomain": keep}),
		"pool":              objectOf(fields{"nodeSelector": labels, "tolerations": tolerations, "devices": keep}),
		"mirrors":           objectOf(fields{"namespaceSelector": labelSelector, "maxPerWorkload": keep, "maxPerNamespace": keep}),
		"priorityClassName": named("priorityclass"),
	}),
})

var bufferRule = object("capacitybuffer", fields{
	"spec": objectOf(fields{
		"replicas": keep, "percentage": keep, "limits": keep, "provisioningStrategy": keep,
		"podTemplateRef": objectOf(fields{"name": named("podtemplate")}),
		"scalableRef":    reference("apiGroup", nil),
	}),
	"status": objectOf(fields{"replicas": keep, "podTemplateRef": objectOf(fields{"name": named("podtemplate")})}),
})
