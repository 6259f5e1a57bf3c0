// Package testcluster has what the integration tests of several packages need: clusters with the CRDs of the project, the programs on
// them, and the objects of slack policies and placements.
package testcluster
