package replay

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// BenchmarkAutoscaler measures three hours of a cluster of about 450 nodes in which 5,000 pods
// arrive, a fifth of them in bursts: on 500 existing nodes, and on nodes that an autoscaler
// adds.
func BenchmarkAutoscaler(b *testing.B) {
	for _, bench := range []struct{ name, cluster, slack string }{
		{"none", "nodes=500,shapes=16x64,fill=0.8,", ""},
		{"autoscaler", "nodes=40,shapes=16x64,fill=10,", "0"},
		{"slack", "nodes=40,shapes=16x64,fill=10,", "10%"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			spec, err := recording.ParseGenerated(bench.cluster + "pods=5000,over=7200,bursts=4,life=3600")
			must.Succeed(b, err)
			for b.Loop() {
				o := options(b, "default", "beta", 1)
				o.Tail = 3600
				if bench.slack != "" {
					o.Autoscaler = autoscalerConfig(b, "shape=16x64,boot=120")
				}
				if bench.slack == "10%" {
					withSlack(o.Autoscaler, "10%")
				}
				if _, err := Run(b.Context(), spec.Input(1, recording.Limits{CPU: 2, Memory: 2}), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
