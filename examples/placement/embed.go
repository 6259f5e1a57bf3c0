// Package placement has the example placements and their fleet, which the demo
// plays.
package placement

import "embed"

// Files are the fleet, the placements of each story, and what changes in the fleet meanwhile.
//
//go:embed fleet.yaml changes/*.yaml */placement.yaml
var Files embed.FS
