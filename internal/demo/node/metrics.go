package node

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

// usedCPUs is what the pods of the playground use by the start of their name, in millicores. The sums are the loads of the playground.
var usedCPUs = map[string]int64{
	"batch-1": 10500, "batch-2": 8900, "cache-": 800, "job-": 600, "log-": 1500, "report-": 400, "web-1": 3400, "web-2": 2200, "web-3": 800,
}

// usedMemory is what each node and each pod uses, in bytes.
const usedMemory = 512 << 20

// ServeUsage serves the usage of nodes and pods as metrics-server does, until ctx ends.
func (d *Demo) ServeUsage(ctx context.Context) error {
	return controlplane.ServeMetrics(ctx, d.env.Client, nodeUsage, d.podUsage)
}

func nodeUsage(context.Context) (used []controlplane.Usage) {
	for _, n := range playground.Nodes {
		cpu := playground.Steps[0].Load[n.Name][0] * float64(n.Object().Status.Capacity.Cpu().MilliValue())
		used = append(used, controlplane.Usage{Name: n.Name, CPU: int64(cpu), Memory: usedMemory})
	}
	return used
}

// podUsage returns the usage of the pods that have a node.
func (d *Demo) podUsage(ctx context.Context) (used []controlplane.Usage) {
	pods, err := d.env.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	for i := 0; err == nil && i < len(pods.Items); i++ {
		u := controlplane.Usage{Namespace: pods.Items[i].Namespace, Name: pods.Items[i].Name, CPU: 100, Memory: usedMemory}
		for prefix, cpu := range usedCPUs {
			if strings.HasPrefix(u.Name, prefix) {
				u.CPU = cpu
			}
		}
		used = append(used, u)
	}
	return used
}
