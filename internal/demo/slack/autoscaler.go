package slack

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/karpenter"
)

// Names of the autoscalers in flags.
const (
	// StandIn is a simple autoscaler that is part of the demo.
	StandIn = "stand-in"
	// Karpenter is a real Karpenter with its simulated provider.
	Karpenter = "karpenter"
)

// Names of the autoscalers in output.
const (
	standInName   = "built-in stand-in for an autoscaler; --autoscaler karpenter runs a real one"
	karpenterName = "Karpenter with its simulated provider"
)

// Shape and boot time of the nodes that the autoscalers add. The boot time is much shorter than in a
// cloud, so that the demo does not wait.
const (
	nodeCPU      = "4"
	nodeMemory   = "16Gi"
	nodePods     = 110
	nodeBootTime = 3 * time.Second
)

// poolLabels are the labels of the nodes that the autoscalers add.
var poolLabels = map[string]string{"pool": "general"}

// runningAutoscaler is a running autoscaler.
type runningAutoscaler struct {
	// timeout bounds each wait for the autoscaler.
	timeout time.Duration
	// deleteNodes makes the autoscaler delete its nodes, unless it does so by itself.
	deleteNodes func(context.Context) error
	// stop stops the autoscaler after the end of the context with which it was started.
	stop   func()
	exited <-chan struct{}
}

// startStandIn starts the stand-in, which runs until ctx ends.
func startStandIn(ctx context.Context, c client.Client) *runningAutoscaler {
	exited := make(chan struct{})
	s := &standIn{client: c}
	go func() {
		defer close(exited)
		wait.UntilWithContext(ctx, s.run, standInInterval)
	}()
	return &runningAutoscaler{
		timeout:     demo.Timeout,
		deleteNodes: func(context.Context) error { return nil },
		stop:        func() { <-exited },
		exited:      exited,
	}
}

// standInBuffers is the CRD that the stand-in reads.
//
//go:embed capacitybuffers.yaml
var standInBuffers []byte

// autoscalerCRDs returns the manifests of the CRDs that the autoscaler reads.
func (d *Demo) autoscalerCRDs() ([][]byte, error) {
	if d.karpenter == nil {
		return [][]byte{standInBuffers}, nil
	}
	files, err := d.karpenter.CRDs()
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		out = append(out, manifest)
	}
	return out, nil
}

// karpenterProgram returns the path of the program of Karpenter.
func (d *Demo) karpenterProgram() string { return filepath.Join(d.env.Plane.Dir, "karpenter") }

// BuildKarpenter builds Karpenter.
func (d *Demo) BuildKarpenter(ctx context.Context) error {
	return d.karpenter.Build(ctx, d.karpenterProgram())
}

// startKarpenter creates a node pool with nodes like the nodes of the stand-in, and starts Karpenter.
func (d *Demo) startKarpenter(ctx context.Context) (*runningAutoscaler, error) {
	// Allocatable plus the overhead that Karpenter subtracts on each node.
	const cpu, memory = "4100m", "16394Mi"
	file := filepath.Join(d.env.Plane.Dir, "instance-types.json")
	if err := os.WriteFile(file, karpenter.InstanceTypes(cpu, memory), 0o600); err != nil {
		return nil, err
	}
	pool, err := karpenter.Pool(cpu, nodeBootTime)
	if err != nil {
		return nil, err
	}
	for _, object := range pool {
		if err := d.env.API.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	process, err := karpenter.Start(karpenter.Options{
		Program: d.karpenterProgram(), Kubeconfig: d.env.Plane.Kubeconfig, Namespace: systemNamespace, InstanceTypes: file, Log: d.log,
	})
	if err != nil {
		return nil, fmt.Errorf("starting Karpenter: %w", err)
	}
	return &runningAutoscaler{
		// Karpenter validates a consolidation for a while before it deletes a node, and does
		// not delete nodes that it has nominated for pods recently.
		timeout:     3 * time.Minute,
		deleteNodes: func(ctx context.Context) error { return deleteClaims(ctx, d.env.API) },
		stop:        process.Stop,
		exited:      process.Exited(),
	}, nil
}

// deleteClaims deletes all NodeClaims and waits until Karpenter has deleted their nodes.
func deleteClaims(ctx context.Context, c client.Client) error {
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"})
	if err := c.DeleteAllOf(ctx, claim); err != nil {
		return err
	}
	return demo.Await(ctx, 100*time.Millisecond, time.Minute, "Karpenter to delete its nodes", func(ctx context.Context) (bool, error) {
		var nodes v1.NodeList
		err := c.List(ctx, &nodes, client.MatchingLabels(poolLabels))
		return len(nodes.Items) == 0, err
	})
}
