package kinds

import (
	"slices"
)

// The rules for objects that affect scheduling.

// lastApplied is the annotation with which kubectl stores copies of objects.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// annotations has the rules for annotations that kube-scheduler or Plimsoll read. Other annotations are dropped.
var annotations = fields{
	"plimsoll.dev/slack":         keep,
	"plimsoll.dev/slack-biggest": keep,
	"kubernetes.io/config.mirror": text(
		func(p *pseudonyms, value string) string { return p.hash("uid", value) },
	),
	"volume.kubernetes.io/selected-node":                                 named("node"),
	"volume.beta.kubernetes.io/storage-class":                            named("storageclass"),
	"pv.kubernetes.io/bind-completed":                                    keep,
	"pv.kubernetes.io/bound-by-controller":                               keep,
	"pv.kubernetes.io/provisioned-by":                                    keep,
	"storageclass.kubernetes.io/is-default-class":                        keep,
	"storage.alpha.kubernetes.io/migrated-plugins":                       keep,
	"cluster.open-cluster-management.io/experimental-scheduling-disable": keep,
}

// uid replaces UIDs by pseudonyms.
var uid = text(func(p *pseudonyms, value string) string { return "uid-" + p.hash("uid", value) })

// owner is the rule for owner references.
var owner = reference("apiVersion", fields{"uid": uid, "controller": keep})

// fixedNode is the rule for managed fields: it keeps that the creator of a pod set spec.nodeName.
func fixedNode(value any, p *pseudonyms) (any, bool) {
	spec := only(objectOf(fields{"f:nodeName": keep}), "f:nodeName")
	entry := only(objectOf(fields{"fieldsV1": only(objectOf(fields{"f:spec": spec}), "f:spec")}), "fieldsV1")
	kept, _ := list(entry)(value, p)
	entries, _ := kept.([]any)
	return kept, len(entries) > 0
}

// object returns the rules for an object of a kind (in lower case): its metadata and further fields.
func object(kind string, f fields) fields {
	return fields{"apiVersion": keep, "kind": keep, "metadata": objectOf(metadata(kind, nil))}.plus(f)
}

// metadata returns the rules for the metadata of an object of a kind. Annotations of the kind have rules in addition to annotations.
func metadata(kind string, ofKind fields) fields {
	return fields{
		"name": named(kind), "namespace": named("namespace"), "uid": uid,
		"creationTimestamp": keep, "deletionTimestamp": keep,
		"labels": labels, "annotations": objectOf(annotations.plus(ofKind)), "ownerReferences": list(owner),
	}
}

// condition returns the rule for conditions. It keeps the given types and drops messages, which may
// contain any names.
func condition(types ...string) rule { return conditionWith(nil, types...) }

// conditionWith is condition with rules for further fields.
func conditionWith(further fields, types ...string) rule {
	known := objectOf(fields{"type": keep, "status": keep, "reason": keep, "lastTransitionTime": keep}.plus(further))
	return list(func(value any, p *pseudonyms) (any, bool) {
		kept, ok := known(value, p)
		if !ok {
			return nil, false
		}
		name, _ := kept.(map[string]any)["type"].(string)
		return kept, slices.Contains(types, name)
	})
}

var (
	labelSelector = objectOf(fields{"matchLabels": labels, "matchExpressions": list(requirement)})
	matchFields   = list(objectOf(fields{"key": keep, "operator": keep, "values": list(named("node"))}))
	nodeTerm      = objectOf(fields{"matchExpressions": list(requirement), "matchFields": matchFields})
	nodeSelector  = objectOf(fields{"nodeSelectorTerms": list(nodeTerm)})

	podTerm = objectOf(fields{
		"labelSelector": labelSelector, "namespaceSelector": labelSelector, "namespaces": list(named("namespace")),
		"topologyKey": key, "matchLabelKeys": list(key), "mismatchLabelKeys": list(key),
	})
	podTerms = objectOf(fields{
		"requiredDuringSchedulingIgnoredDuringExecution":  list(podTerm),
		"preferredDuringSchedulingIgnoredDuringExecution": list(objectOf(fields{"weight": keep, "podAffinityTerm": podTerm})),
	})
	affinity = objectOf(fields{
		"nodeAffinity": objectOf(fields{
			"requiredDuringSchedulingIgnoredDuringExecution":  nodeSelector,
			"preferredDuringSchedulingIgnoredDuringExecution": list(objectOf(fields{"weight": keep, "preference": nodeTerm})),
		}),
		"podAffinity": podTerms, "podAntiAffinity": podTerms,
	})
	tolerations = list(keyed("key", fields{"operator": keep, "effect": keep, "tolerationSeconds": keep}))
	spread      = list(objectOf(fields{
		"maxSkew": keep, "minDomains": keep, "whenUnsatisfiable": keep, "nodeAffinityPolicy": keep, "nodeTaintsPolicy": keep,
		"topologyKey": key, "labelSelector": labelSelector, "matchLabelKeys": list(key),
	}))
	resources = objectOf(fields{
		"requests": keep, "limits": keep, "claims": list(objectOf(fields{"name": named("podclaim"), "request": requestName})),
	})
	image      = text((*pseudonyms).image)
	containers = list(objectOf(fields{
		"name": named("container"), "image": image, "resources": resources, "restartPolicy": keep,
		"ports": list(objectOf(fields{"containerPort": keep, "hostPort": keep, "protocol": keep, "hostIP": text((*pseudonyms).address)})),
	}))
	volumes = list(only(objectOf(fields{
		"name":                  named("volume"),
		"persistentVolumeClaim": objectOf(fields{"claimName": named("persistentvolumeclaim"), "readOnly": keep}),
		"ephemeral":             objectOf(fields{"volumeClaimTemplate": objectOf(fields{"spec": objectOf(claimSpec)})}),
		"csi":                   objectOf(fields{"driver": keep, "readOnly": keep}),
		"gcePersistentDisk":     objectOf(fields{"pdName": named("disk"), "readOnly": keep}),
		"awsElasticBlockStore":  objectOf(fields{"volumeID": named("disk"), "readOnly": keep}),
		"azureDisk":             objectOf(fields{"diskName": named("disk"), "diskURI": named("disk"), "readOnly": keep}),
		"iscsi":                 objectOf(fields{"targetPortal": named("disk"), "iqn": named("disk"), "lun": keep, "readOnly": keep}),
		"rbd": objectOf(fields{
			"monitors": list(named("disk")), "pool": named("disk"), "image": named("disk"), "readOnly": keep,
		}),
	}), "persistentVolumeClaim", "ephemeral", "csi", "gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "iscsi", "rbd"))

	podSpec = objectOf(fields{
		"nodeName": named("node"), "schedulerName": keep, "priority": keep, "priorityClassName": named("priorityclass"),
		"preemptionPolicy": keep, "restartPolicy": keep, "hostNetwork": keep, "os": keep, "overhead": keep, "resources": resources,
		"nodeSelector": labels, "affinity": affinity, "tolerations": tolerations, "topologySpreadConstraints": spread,
		"schedulingGates": list(objectOf(fields{"name": named("gate")})),
		"containers":      containers, "initContainers": containers, "volumes": volumes,
		"resourceClaims": list(objectOf(fields{
			"name": named("podclaim"), "resourceClaimName": named("resourceclaim"),
			"resourceClaimTemplateName": named("resourceclaimtemplate"),
		})),
		"schedulingGroup": objectOf(fields{"podGroupName": named("podgroup")}),
	})
	template = objectOf(fields{
		"metadata": objectOf(fields{"labels": labels, "annotations": objectOf(annotations)}),
		"spec":     podSpec,
	})
	statuses = list(
		objectOf(
			fields{
				"name": named("container"), "resources": resources, "allocatedResources": keep, "ready": keep,
				"restartCount": keep, "started": keep,
			},
		),
	)

	podRule = object("pod", fields{
		"metadata": objectOf(metadata("pod", fields{}).plus(fields{"managedFields": fixedNode})), "spec": podSpec,
		"status": objectOf(fields{
			"phase": keep, "qosClass": keep, "startTime": keep, "nominatedNodeName": named("node"),
			"conditions":            condition("PodScheduled", "Ready", "DisruptionTarget", "PodResizePending", "PodResizeInProgress"),
			"resourceClaimStatuses": list(objectOf(fields{"name": named("podclaim"), "resourceClaimName": named("resourceclaim")})),
			"containerStatuses":     statuses, "initContainerStatuses": statuses, "resources": resources, "allocatedResources": keep,
		}),
	})

	nodeRule = object("node", fields{
		"spec": objectOf(fields{
			"unschedulable": keep,
			"taints":        list(keyed("key", fields{"effect": keep, "timeAdded": keep})),
		}),
		"status": objectOf(fields{
			"capacity": keep, "allocatable": keep, "declaredFeatures": keep, "nodeInfo": objectOf(fields{"swap": keep}),
			"conditions": condition("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"),
			"images":     list(objectOf(fields{"names": list(text((*pseudonyms).nodeImage)), "sizeBytes": keep})),
		}),
	})
)

// workload returns the rules for an object that creates pods.
func workload(kind string) fields {
	return object(kind, fields{
		"spec": objectOf(fields{
			"replicas": keep, "selector": labelSelector, "template": template, "serviceName": named("service"),
			"parallelism": keep, "completions": keep, "completionMode": keep, "suspend": keep,
		}),
		"status": objectOf(
			fields{
				"replicas": keep, "readyReplicas": keep, "active": keep, "succeeded": keep,
				"conditions": condition("Complete", "Failed", "Suspended"),
			},
		),
	})
}

var replicationControllerRule = object("replicationcontroller", fields{
	"spec": objectOf(fields{"replicas": keep, "selector": labels, "template": template}),
})

var priorityClassRule = object("priorityclass", fields{"value": keep, "globalDefault": keep, "preemptionPolicy": keep})

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

// The rules for volumes and related objects. Servers, paths and parameters are dropped: kube-scheduler does
// not read them.

var claimSpec = fields{
	"accessModes": keep, "resources": resources, "volumeMode": keep, "selector": labelSelector,
	"storageClassName": named("storageclass"), "volumeName": named("persistentvolume"),
}

var claimRule = object("persistentvolumeclaim", fields{
	"spec":   objectOf(claimSpec),
	"status": objectOf(fields{"phase": keep, "accessModes": keep, "capacity": keep}),
})

var volumeRule = object("persistentvolume", fields{
	"spec": objectOf(fields{
		"capacity": keep, "accessModes": keep, "volumeMode": keep, "persistentVolumeReclaimPolicy": keep,
		"storageClassName": named("storageclass"),
		"claimRef": objectOf(fields{
			"kind": keep, "namespace": named("namespace"), "name": named("persistentvolumeclaim"), "uid": uid,
		}),
		"nodeAffinity": objectOf(fields{"required": nodeSelector}),
		// Volumes with the same driver and handle count once.
		"csi":                  objectOf(fields{"driver": keep, "volumeHandle": named("disk")}),
		"gcePersistentDisk":    objectOf(fields{"pdName": named("disk")}),
		"awsElasticBlockStore": objectOf(fields{"volumeID": named("disk")}),
		"azureDisk":            objectOf(fields{"diskName": named("disk"), "diskURI": named("disk")}),
	}),
	"status": objectOf(fields{"phase": keep}),
})

var storageClassRule = object("storageclass", fields{
	"provisioner": keep, "reclaimPolicy": keep, "volumeBindingMode": keep, "allowVolumeExpansion": keep,
	"allowedTopologies": list(objectOf(fields{"matchLabelExpressions": list(requirement)})),
})

var csiNodeRule = object("node", fields{
	"spec": objectOf(fields{"drivers": list(objectOf(fields{
		"name": keep, "nodeID": named("node"), "topologyKeys": list(key), "allocatable": keep,
	}))}),
})

// csiDriverRule keeps the name of the object, which is the name of a driver: it identifies the software, not the cluster.
var csiDriverRule = fields{
	"apiVersion": keep, "kind": keep, "metadata": objectOf(fields{"name": keep, "uid": uid, "creationTimestamp": keep}),
	"spec": objectOf(fields{"attachRequired": keep, "storageCapacity": keep, "volumeLifecycleModes": keep, "podInfoOnMount": keep}),
}

var csiCapacityRule = object("csistoragecapacity", fields{
	"storageClassName": named("storageclass"), "nodeTopology": labelSelector, "capacity": keep, "maximumVolumeSize": keep,
})

var attachmentRule = object("volumeattachment", fields{
	"spec": objectOf(fields{
		"attacher": keep, "nodeName": named("node"),
		"source": objectOf(fields{"persistentVolumeName": named("persistentvolume")}),
	}),
	"status": objectOf(fields{"attached": keep}),
})

var budgetRule = object("poddisruptionbudget", fields{
	"spec":   objectOf(fields{"minAvailable": keep, "maxUnavailable": keep, "selector": labelSelector, "unhealthyPodEvictionPolicy": keep}),
	"status": objectOf(fields{"currentHealthy": keep, "desiredHealthy": keep, "disruptionsAllowed": keep, "expectedPods": keep}),
})
