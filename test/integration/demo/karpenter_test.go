//go:build foreign

package demo

import "testing"

// TestDemoWithKarpenter expects the results of slack with Karpenter in place of the autoscaler of the demo.
func TestDemoWithKarpenter(t *testing.T) {
	expectSlack(t, results(t, "slack", "--autoscaler", "karpenter"))
}
