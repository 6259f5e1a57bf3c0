package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// reference is what happened to a program with the work of the latency services, on a schedule of its own, outside of the quotas of nodes.
type reference struct {
	// pressure is the share of the time in which it waited for a processor of the machine.
	pressure float64
	// late is the share of its requests that ended late.
	late float64
}

// runReference runs the program for a time.
func runReference(ctx context.Context, duration time.Duration) (reference, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin, before := time.Now(), waitedTime()
	requests, lateRequests := 0, 0
	for next := begin; next.Before(begin.Add(duration)); next = next.Add(time.Second / serviceRate) {
		if err := sleep(ctx, time.Until(next)); err != nil {
			return reference{}, err
		}
		for end := threadTime() + serviceWork; threadTime() < end; {
			work()
		}
		requests++
		if time.Since(next) > late {
			lateRequests++
		}
	}
	if err := sleep(ctx, time.Until(begin.Add(duration))); err != nil {
		return reference{}, err
	}
	waited := waitedTime() - before
	return reference{waited.Seconds() / time.Since(begin).Seconds(), float64(lateRequests) / float64(max(requests, 1))}, nil
}

// work uses some microseconds of CPU time.
func work() {
	sum := 0.0
	for i := range 500 {
		sum += math.Sqrt(float64(i))
	}
	runtime.KeepAlive(sum) // the compiler does not leave out the work
}

// threadTime returns the CPU time of the current thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

// waitedTime returns how long the current thread has waited for a processor.
func waitedTime() time.Duration {
	raw, err := os.ReadFile("/proc/thread-self/schedstat")
	fields := strings.Fields(string(raw))
	if err != nil || len(fields) < 2 {
		panic(fmt.Sprintf("schedstat: %v: %q", err, raw))
	}
	waited, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(waited)
}
