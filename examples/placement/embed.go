// Package placement has the example placements and their fleet, which the demo
// plays.
package placement

import "embed"

// Files are the fleet, the placements of each story in both forms, and what
// changes in the fleet meanwhile.
//
//go:embed fleet.yaml changes/*.yaml */placement.v1alpha1.yaml */placement.v1beta1.yaml
var Files embed.FS
