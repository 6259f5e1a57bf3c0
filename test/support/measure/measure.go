// Package measure returns the CPU time and the memory of the process of a benchmark.
package measure

import (
	"runtime"
	"syscall"
	"time"
)

// CPU returns the CPU time of the process.
func CPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Heap returns the bytes of the heap that are in use after a garbage collection.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // frees what the first one has finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
