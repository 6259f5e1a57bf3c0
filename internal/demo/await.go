package demo

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Timeout bounds each wait for the cluster.
const Timeout = 30 * time.Second

// Await polls a condition until it is true. If it does not become true within the timeout, the
// error says what Await was waiting for; if ctx ends, the error is its cause.
func Await(ctx context.Context, interval, timeout time.Duration, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, condition); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
