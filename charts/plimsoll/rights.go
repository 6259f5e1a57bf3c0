// Package chart embeds files of the Helm chart for programs.
package chart

import "embed"

// Rights are the roles that the chart grants to components, generated from kubebuilder markers in the
// code. generated/rbac/PART.yaml has a ClusterRole, a Role, or both.
//
//go:embed generated/rbac/*.yaml
var Rights embed.FS
