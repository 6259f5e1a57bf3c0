package main

import (
	"context"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// runModel runs a profile beside the model of an autoscaler, which removes nodes below half of their requests after 30 s, as Karpenter does
// with consolidateAfter: 15s and its own 15 s of validation.
func runModel(ctx context.Context, k key) (figures, error) {
	in, err := input(k.Arrivals, k.Seed)
	if err != nil {
		return figures{}, err
	}
	profile, err := engine.ReadConfig(k.Profile)
	if err != nil {
		return figures{}, err
	}
	config, err := profile.Config()
	if err != nil {
		return figures{}, err
	}
	spec, err := scaling.Parse([]string{fmt.Sprintf("shape=%dx%d,boot=%d,interval=5,idle=30,after-add=0", nodeCores, nodeGiB, bootSeconds)})
	if err != nil {
		return figures{}, err
	}
	r, err := replay.Run(ctx, in, replay.Options{
		Config: config, Metrics: result.Metrics{IntervalSeconds: 60, WindowSeconds: 60}, Settle: past,
		Autoscaler: &scaling.Config{Spec: spec},
	})
	if err != nil {
		return figures{}, err
	}
	return figures{
		NodeMinutes: r.Scaling.NodeHours * 60, Pods: int(r.Waits.Pods()), Evicted: r.Churn, WaitMean: r.PendingSeconds.Mean,
		WaitP99: r.Waits.Percentile(99).Seconds(), OverloadMinutes: r.OverloadMinutes,
	}, nil
}
