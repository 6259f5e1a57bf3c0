package demo

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/karpenter"
)

// The autoscalers that the slack scenario can be run with.
const (
	// AutoscalerStandIn is a small loop of the demo's own.
	AutoscalerStandIn = "stand-in"
	// AutoscalerKarpenter is a real Karpenter with its simulated provider.
	AutoscalerKarpenter = "karpenter"
)

// What autoscalers are called wherever they are at work.
const (
	standInName   = "built-in stand-in for an autoscaler; --autoscaler karpenter for a real one"
	karpenterName = "Karpenter with its simulated provider"
)

// The nodes that autoscalers make in the demo, and how long one takes to boot:
// far shorter than in a cloud, so that the demo need not wait.
const (
	nodeCPU      = "4"
	nodeMemory   = "16Gi"
	nodeBootTime = 3 * time.Second
)

// poolLabels are on these nodes.
var poolLabels = map[string]string{"pool": "general"}

// autoscaler is what makes and takes away the nodes of the slack scenario.
type autoscaler struct {
	// patience bounds every wait for it.
	patience time.Duration
	// empty makes it take away all that it has made, if it must be asked.
	empty func(context.Context) error
	// stop ends it, and may be called more than once.
	stop   func()
	exited <-chan struct{}
}

// startStandIn runs the stand-in until it is stopped.
func startStandIn(ctx context.Context, c client.Client) *autoscaler {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&standIn{client: c}).run(ctx)
	}()
	return &autoscaler{
		patience: patience,
		empty:    func(context.Context) error { return nil },
		stop:     func() { cancel(); <-ended },
		exited:   ended,
	}
}

// The CRD that the stand-in wants.
//
//go:embed capacitybuffers.yaml
var standInBuffers []byte

// realAutoscaler is Karpenter, found and built.
type realAutoscaler struct {
	source  *karpenter.Source
	program string
}

// crds returns the manifests that it wants.
func (r *realAutoscaler) crds() ([][]byte, error) {
	files, err := r.source.CRDs()
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

// build builds it into a folder.
func (r *realAutoscaler) build(ctx context.Context, dir string) error {
	r.program = filepath.Join(dir, "karpenter")
	return r.source.Build(ctx, r.program)
}

// start makes a pool of nodes like the stand-in's, and runs Karpenter until it
// is stopped.
func (r *realAutoscaler) start(ctx context.Context, c client.Client, kubeconfig string, log io.Writer) (*autoscaler, error) {
	// With what it keeps to itself on every node.
	const cpu, memory = "4100m", "16394Mi"
	types, err := karpenter.InstanceTypes(cpu, memory)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(filepath.Dir(r.program), "instance-types.json")
	if err := os.WriteFile(file, types, 0o600); err != nil {
		return nil, err
	}
	pool, err := karpenter.Pool(cpu, nodeBootTime)
	if err != nil {
		return nil, err
	}
	for _, object := range pool {
		if err := c.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	process, err := karpenter.Start(karpenter.Options{
		Program: r.program, Kubeconfig: kubeconfig, Namespace: reserve, InstanceTypes: file, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("starting Karpenter: %w", err)
	}
	return &autoscaler{
		// It looks twice before it takes a node away, and leaves those alone that it
		// had meant for pods a moment ago.
		patience: 3 * time.Minute,
		empty:    func(ctx context.Context) error { return emptyPool(ctx, c) },
		stop:     process.Stop, exited: process.Exited(),
	}, nil
}

// emptyPool makes Karpenter take its nodes away while it still runs: nobody
// else can.
func emptyPool(ctx context.Context, c client.Client) error {
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"})
	if err := c.DeleteAllOf(ctx, claim); err != nil {
		return err
	}
	return await(ctx, 100*time.Millisecond, time.Minute, "Karpenter to take its nodes away", func(ctx context.Context) (bool, error) {
		var nodes v1.NodeList
		err := c.List(ctx, &nodes, client.MatchingLabels(poolLabels))
		return len(nodes.Items) == 0, err
	})
}
