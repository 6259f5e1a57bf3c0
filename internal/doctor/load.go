package doctor

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// checkLoad reads the load of each load-watcher through the API server, and checks whether it is recent
// and covers all nodes.
func (e *examination) checkLoad(ctx context.Context) error {
	options := metav1.ListOptions{LabelSelector: partOfLabel + "," + componentLabel + "=load-watcher"}
	services, err := e.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return err
	}
	if len(services.Items) == 0 {
		e.absent("no load-watcher is installed; to read another source: plimsoll load top --help")
		return nil
	}
	for i := range services.Items {
		if err := e.checkWatcher(ctx, &services.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkWatcher reads and checks the load of a load-watcher.
func (e *examination) checkWatcher(ctx context.Context, service *v1.Service) error {
	name := resources.Name(service)
	if len(service.Spec.Ports) == 0 {
		return nil
	}
	port := service.Spec.Ports[0]
	logs := fmt.Sprintf("kubectl logs -n %s -l %s,%s=load-watcher", service.Namespace, partOfLabel, componentLabel)
	services := e.kube.CoreV1().Services(service.Namespace)
	response, err := services.ProxyGet("http", service.Name, fmt.Sprint(port.Port), "watcher", nil).DoRaw(ctx)
	if err != nil {
		e.add(Problem, fmt.Sprintf("load-watcher %s does not respond: %v", name, err), logs+"; docs/load.md has a check for each source")
		return nil
	}
	e.checkReading(name, response, logs)
	return nil
}

// erraticDeviation is the standard deviation above which the load of a node jumps: a load that is 0 for half of
// the window and 100% for the rest has 0.5.
const erraticDeviation = 0.3

// warnOfNodes adds a warning of nodes whose load is probably wrong.
func (e *examination) warnOfNodes(watcher string, nodes []string, load string) {
	if len(nodes) > 0 {
		slices.Sort(nodes)
		e.add(Warning, fmt.Sprintf("%s reports for %s %s: %s",
			watcher, format.Part(len(nodes), len(e.nodes), "node"), load, abbreviate(nodes)),
			"check the source with plimsoll load top: LowRiskOverCommitment prefers such nodes, and may place most new pods there")
	}
}

// checkReading checks the response of a load-watcher.
func (e *examination) checkReading(name string, response []byte, logs string) {
	reading, err := wire.Decode(bytes.NewReader(response))
	if err != nil {
		e.add(Problem, fmt.Sprintf("load-watcher %s returns invalid load: %v", name, err), logs)
		return
	}
	if age := e.now.Sub(reading.Time); age > metricprovider.DefaultMaxAge {
		e.add(Problem, fmt.Sprintf("the load of %s is %s old: schedulers do not use load that is older than %s",
			name, format.Age(age), format.Age(metricprovider.DefaultMaxAge)), logs)
		return
	}
	var missing, idle, erratic []string
	for i := range e.nodes {
		switch node, known := reading.Nodes[e.nodes[i].Name]; {
		case !known:
			missing = append(missing, e.nodes[i].Name)
		case node.HasNoUsage():
			idle = append(idle, e.nodes[i].Name)
		case node.HasCPU && node.CPU.StdDev > erraticDeviation:
			erratic = append(erratic, e.nodes[i].Name)
		}
	}
	slices.Sort(missing)
	e.warnOfNodes(name, idle, "no CPU usage, though each node runs at least its kubelet")
	e.warnOfNodes(name, erratic, fmt.Sprintf("a CPU usage that jumps, with a standard deviation of over %.0f%%", 100*erraticDeviation))
	switch {
	case len(e.nodes) > 0 && len(missing) == len(e.nodes):
		e.add(Problem, fmt.Sprintf("%s has load of %s, but none has the name of a node of the cluster (%s)",
			name, format.Of(len(reading.Nodes), "node"), abbreviate(missing)),
			"configure how the source names nodes: --node-label, or addresses (docs/load.md)")
	case len(missing) > 0:
		e.add(Warning, fmt.Sprintf("%s has no load of %s: %s", name, format.Part(len(missing), len(e.nodes), "node"), abbreviate(missing)),
			"check whether the source measures them: plimsoll load top")
	default:
		e.ok("%s has load of %s, %s old", name, format.Part(len(e.nodes), len(e.nodes), "node"), format.Age(e.now.Sub(reading.Time)))
	}
}
