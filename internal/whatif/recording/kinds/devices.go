package kinds

import (
	"regexp"
	"strings"
)

// The rules for dynamic resource allocation. Names of drivers are kept, as for volumes; the configuration of devices
// is dropped, as kube-scheduler does not read it.

// driverOnly matches a CEL expression that selects the devices of one driver.
var driverOnly = regexp.MustCompile(`^\s*device\.driver\s*==\s*(?:"[a-z0-9.-]+"|'[a-z0-9.-]+')\s*$`)

// celSelector keeps an expression that selects devices. Names in expressions cannot be replaced: with pseudonyms, an
// expression that may have more than the name of a driver is dropped.
func celSelector(value any, p *pseudonyms) (any, bool) {
	kept, ok := fields{"cel": objectOf(fields{"expression": keep})}.rule(value, p)
	if !ok || p == nil {
		return kept, ok
	}
	cel, _ := kept.(map[string]any)["cel"].(map[string]any)
	expression, _ := cel["expression"].(string)
	return kept, driverOnly.MatchString(expression)
}

// requestName replaces the name of a request, or the names REQUEST/SUBREQUEST.
var requestName = text(func(p *pseudonyms, value string) string {
	parts := strings.Split(value, "/")
	for i := range parts {
		parts[i] = p.name("request", parts[i])
	}
	return strings.Join(parts, "/")
})

// attributes keeps the attributes of a device, with pseudonyms for texts.
func attributes(value any, p *pseudonyms) (any, bool) {
	all, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	out := make(map[string]any, len(all))
	for name, attribute := range all {
		kept, ok := fields{"int": keep, "bool": keep, "version": keep, "string": named("attribute")}.rule(attribute, p)
		if ok {
			out[name] = kept
		}
	}
	return out, true
}

var (
	deviceTolerations = list(keyed("key", fields{"operator": keep, "effect": keep, "tolerationSeconds": keep}))
	deviceRequest     = fields{
		"deviceClassName": named("deviceclass"), "allocationMode": keep, "count": keep, "adminAccess": keep,
		"selectors": list(celSelector), "tolerations": deviceTolerations, "capacity": keep,
	}
	deviceClaim = objectOf(fields{
		"requests": list(objectOf(fields{
			"name": requestName, "exactly": objectOf(deviceRequest),
			"firstAvailable": list(objectOf(deviceRequest.plus(fields{"name": requestName}))),
		})),
		"constraints": list(objectOf(fields{"requests": list(requestName), "matchAttribute": keep, "distinctAttribute": keep})),
	})
	// A pool mostly has the name of its node.
	pool = named("node")

	resourceClaimRule = object("resourceclaim", fields{
		"spec": objectOf(fields{"devices": deviceClaim}),
		"status": objectOf(fields{
			"allocation": objectOf(fields{
				"devices": objectOf(fields{"results": list(objectOf(fields{
					"request": requestName, "driver": keep, "pool": pool, "device": named("device"), "adminAccess": keep,
					"tolerations": deviceTolerations, "shareID": keep, "consumedCapacity": keep,
				}))}),
				"nodeSelector": nodeSelector, "allocationTimestamp": keep,
			}),
			"reservedFor": list(objectOf(fields{"apiGroup": keep, "resource": keep, "name": named("pod"), "uid": uid})),
		}),
	})
	resourceClaimTemplateRule = object("resourceclaimtemplate", fields{
		"spec": objectOf(fields{"metadata": objectOf(fields{"labels": labels}), "spec": objectOf(fields{"devices": deviceClaim})}),
	})
	deviceClassRule = object("deviceclass", fields{
		"spec": objectOf(fields{"selectors": list(celSelector), "extendedResourceName": keep}),
	})
	resourceSliceRule = object("resourceslice", fields{
		"spec": objectOf(fields{
			"driver": keep, "pool": objectOf(fields{"name": pool, "generation": keep, "resourceSliceCount": keep}),
			"nodeName": named("node"), "nodeSelector": nodeSelector, "allNodes": keep, "perDeviceNodeSelection": keep,
			"sharedCounters": keep,
			"devices": list(objectOf(fields{
				"name": named("device"), "attributes": attributes, "capacity": keep, "consumesCounters": keep,
				"nodeName": named("node"), "nodeSelector": nodeSelector, "allNodes": keep, "allowMultipleAllocations": keep,
				"taints": list(keyed("key", fields{"effect": keep, "timeAdded": keep})),
			})),
		}),
	})
)
