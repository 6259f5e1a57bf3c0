package kinds

// The rules for volumes and related objects. Servers, paths and parameters are dropped: kube-scheduler does
// not read them.

var claimSpec = fields{
	"accessModes": keep, "resources": resources, "volumeMode": keep, "selector": labelSelector,
	"storageClassName": named("storageclass"), "volumeName": named("persistentvolume"),
}

var claimRule = object("persistentvolumeclaim", fields{
	"spec":   in(claimSpec),
	"status": in(fields{"phase": keep, "accessModes": keep, "capacity": keep}),
})

var volumeRule = object("persistentvolume", fields{
	"spec": in(fields{
		"capacity": keep, "accessModes": keep, "volumeMode": keep, "persistentVolumeReclaimPolicy": keep,
		"storageClassName": named("storageclass"),
		"claimRef":         in(fields{"kind": keep, "namespace": named("namespace"), "name": named("persistentvolumeclaim"), "uid": uid}),
		"nodeAffinity":     in(fields{"required": nodeSelector}),
		// Volumes with the same driver and handle count once.
		"csi":                  in(fields{"driver": keep, "volumeHandle": named("disk")}),
		"gcePersistentDisk":    in(fields{"pdName": named("disk")}),
		"awsElasticBlockStore": in(fields{"volumeID": named("disk")}),
		"azureDisk":            in(fields{"diskName": named("disk"), "diskURI": named("disk")}),
	}),
	"status": in(fields{"phase": keep}),
})

var storageClassRule = object("storageclass", fields{
	"provisioner": keep, "reclaimPolicy": keep, "volumeBindingMode": keep, "allowVolumeExpansion": keep,
	"allowedTopologies": list(in(fields{"matchLabelExpressions": list(requirement)})),
})

var csiNodeRule = object("node", fields{
	"spec": in(fields{"drivers": list(in(fields{
		"name": keep, "nodeID": named("node"), "topologyKeys": list(key), "allocatable": keep,
	}))}),
})

// csiDriverRule keeps the name of the object, which is the name of a driver: it identifies the software, not the cluster.
var csiDriverRule = fields{
	"apiVersion": keep, "kind": keep, "metadata": in(fields{"name": keep, "uid": uid, "creationTimestamp": keep}),
	"spec": in(fields{"attachRequired": keep, "storageCapacity": keep, "volumeLifecycleModes": keep, "podInfoOnMount": keep}),
}

var csiCapacityRule = object("csistoragecapacity", fields{
	"storageClassName": named("storageclass"), "nodeTopology": labelSelector, "capacity": keep, "maximumVolumeSize": keep,
})

var attachmentRule = object("volumeattachment", fields{
	"spec": in(fields{
		"attacher": keep, "nodeName": named("node"),
		"source": in(fields{"persistentVolumeName": named("persistentvolume")}),
	}),
	"status": in(fields{"attached": keep}),
})

var budgetRule = object("poddisruptionbudget", fields{
	"spec":   in(fields{"minAvailable": keep, "maxUnavailable": keep, "selector": labelSelector, "unhealthyPodEvictionPolicy": keep}),
	"status": in(fields{"currentHealthy": keep, "desiredHealthy": keep, "disruptionsAllowed": keep, "expectedPods": keep}),
})
