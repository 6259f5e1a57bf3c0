// Package crd has the CRDs that Plimsoll needs, as they are installed in a
// cluster.
package crd

import "embed"

// ResourceSlacks is the CRD of slack policies.
//
//go:embed plimsoll.dev_resourceslacks.yaml
var ResourceSlacks []byte

// ClusterCapacities is the CRD of the summaries of member clusters, for hubs.
//
//go:embed plimsoll.dev_clustercapacities.yaml
var ClusterCapacities []byte

// Placements is our own CRD of placements, for hubs that have none.
//
//go:embed cluster.open-cluster-management.io_placements.yaml
var Placements []byte

// OCM are the CRDs of the types of Open Cluster Management that are used as they
// are, for hubs that have none. PlacementDecision has a further version, in which
// the controller creates objects with one write.
//
//go:embed ocm/*.yaml
var OCM embed.FS

// OfPlacements returns the CRDs that the placement controller needs.
func OfPlacements() [][]byte {
	manifests := [][]byte{Placements}
	files, _ := OCM.ReadDir("ocm") // it is part of the program
	for _, file := range files {
		manifest, _ := OCM.ReadFile("ocm/" + file.Name())
		manifests = append(manifests, manifest)
	}
	return manifests
}
