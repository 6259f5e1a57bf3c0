//go:build nodes

package tests

import "testing"

// TestNodes runs the tests that have nodes of their own side by side, beside a recording, a shadow and an agent over the time of all of
// them. Then come the tests of failures of metrics and nodes, which concern all.
func TestNodes(t *testing.T) {
	followed := startFollowing(t)
	watched := startShadow(t)
	startAgent(t)
	startLoad(t)
	t.Run("side by side", func(t *testing.T) {
		for name, test := range map[string]func(t *testing.T){"load": testLoad, "slack": testSlack, "kinds": testKinds} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
	t.Run("agent", testAgent)
	t.Run("metrics stop", testMetricsStop)
	t.Run("recording of the past", testRecordPast)
	t.Run("node is recreated", testRecreatedNode)
	t.Run("recording", func(t *testing.T) { testRecording(t, followed) })
	t.Run("shadow", func(t *testing.T) { testShadow(t, watched) })
}
