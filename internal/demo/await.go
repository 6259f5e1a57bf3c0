package demo

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patience bounds every wait for the cluster.
const patience = 30 * time.Second

// await waits for a condition, which is asked about in an interval.
func await(ctx context.Context, interval, patience time.Duration, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, interval, patience, true, condition); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
