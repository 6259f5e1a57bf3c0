package predict

import (
	"testing"
	"unsafe"
)

// TestHistoryIsSmall checks that the state of a workload takes at most 1 KiB.
func TestHistoryIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(workloadState{}); size > 1024 {
		t.Errorf("the state of a workload has %d bytes, want at most 1024", size)
	}
}
