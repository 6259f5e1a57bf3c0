package prediction

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestContext checks that the context is done when the functions have returned, and after five seconds if they do not.
func TestContext(t *testing.T) {
	for name, tc := range map[string]struct {
		takes, want time.Duration
	}{
		"nothing to do": {0, 0},
		"two seconds":   {2 * time.Second, 2 * time.Second},
		"an hour":       {time.Hour, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outer, cancel := context.WithCancel(t.Context())
				ctx, stop := WithShutdown(outer)
				defer stop()
				type name string
				child := context.WithValue(ctx, name("a"), "b")
				if !beforeShutdown(child, func(ctx context.Context) {
					select {
					case <-time.After(tc.takes):
					case <-ctx.Done():
					}
				}) {
					t.Error("not registered")
				}
				synctest.Wait()
				if ctx.Err() != nil {
					t.Error("the context is done before the outer one")
				}
				began := time.Now()
				cancel()
				<-ctx.Done()
				if took := time.Since(began); took != tc.want {
					t.Errorf("stopped after %s, want %s", took, tc.want)
				}
			})
		})
	}
}

func TestOtherContexts(t *testing.T) {
	if beforeShutdown(t.Context(), func(context.Context) { t.Error("called") }) {
		t.Error("registered with a context of another kind")
	}
	ctx, stop := WithShutdown(t.Context())
	beforeShutdown(ctx, func(context.Context) { t.Error("called by stop") })
	stop()
	<-ctx.Done()
}
