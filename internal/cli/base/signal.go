package base

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// gracePeriod is how long a program may take to end after a signal before it is terminated. It ensures
// that the program ends within a second during any computation.
const gracePeriod = 900 * time.Millisecond

// SignalContext returns a context that ends at the first SIGINT or SIGTERM. If the process has not ended
// after gracePeriod, or at a second signal, it exits with exitCode: code that computes may not observe its
// context. The returned function stops the handling of signals and releases the resources.
func SignalContext(program string, exitCode int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel()
		case <-done:
			return
		}
		select {
		case <-signals:
		case <-time.After(gracePeriod):
			fmt.Fprintf(os.Stderr, "%s: terminated: it has not ended within %s of a signal\n", program, gracePeriod)
		case <-done:
			return
		}
		os.Exit(exitCode)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
