// Command released measures released code of other projects: the score plugins of
// sigs.k8s.io/scheduler-plugins and the placement scheduler of Open Cluster Management. It is a
// module of its own because they need another version of Kubernetes.
//
// Its arguments are the file with the workload and the address of a load watcher. For each name of a case on
// a line of the standard input, it writes the CPU time of one operation in nanoseconds to a line of the standard output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// workload is the input of all cases. The program in lab/peers writes the same fields.
type workload struct {
	Pod *v1.Pod `json:"pod"`
	// Nodes has a node and its pods by the number of pods.
	Nodes map[string]struct {
		Node *v1.Node  `json:"node"`
		Pods []*v1.Pod `json:"pods"`
	} `json:"nodes"`
	Clusters   []*clusterv1.ManagedCluster          `json:"clusters"`
	Decisions  []*clusterv1beta1.PlacementDecision  `json:"decisions"`
	Placements map[string]*clusterv1beta1.Placement `json:"placements"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("found %d arguments: must be the file with the workload and the address of a load watcher", len(args))
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var w workload
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	operations := map[string]operation{}
	ctx := context.Background()
	if err := addScores(ctx, &w, args[1], operations); err != nil {
		return err
	}
	addPlacements(ctx, &w, operations)
	return serve(os.Stdin, os.Stdout, operations)
}
