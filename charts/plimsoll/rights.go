// Package chart has what programs need to know of the Helm chart.
package chart

import "embed"

// Rights are the roles that the chart gives to components, by parts: what markers
// beside the code ask for. generated/rbac/PART.yaml has a ClusterRole, a Role, or
// both.
//
//go:embed generated/rbac/*.yaml
var Rights embed.FS
