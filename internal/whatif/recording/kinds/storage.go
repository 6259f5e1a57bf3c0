package kinds

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
