// Package crd has Plimsoll's own CRDs, as they are installed in a cluster.
package crd

import _ "embed"

// ResourceSlacks is the CRD of slack policies.
//
//go:embed plimsoll.dev_resourceslacks.yaml
var ResourceSlacks []byte
