package doctor

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// loadAge is how old load may be for the plugins, unless their arguments say
// otherwise (maxLoadAge).
const loadAge = 5 * time.Minute

// load asks each load-watcher, through the API server, for what it would tell a
// scheduler: whether that is fresh, and about the nodes that there are.
func (x *examination) load(ctx context.Context) error {
	services, err := x.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: partOf + "," + component + "=load-watcher"})
	if err != nil {
		return err
	}
	if len(services.Items) == 0 {
		x.ok("no load-watcher is installed; to see what another source says: plimsoll load top --help")
		return nil
	}
	for i := range services.Items {
		if err := x.watcher(ctx, &services.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// watcher asks one.
func (x *examination) watcher(ctx context.Context, service *v1.Service) error {
	name := facts.Name(service)
	if len(service.Spec.Ports) == 0 {
		return nil
	}
	port := service.Spec.Ports[0]
	logs := fmt.Sprintf("kubectl logs -n %s -l %s,%s=load-watcher", service.Namespace, partOf, component)
	answer, err := x.kube.CoreV1().Services(service.Namespace).ProxyGet("http", service.Name, fmt.Sprint(port.Port), "watcher", nil).DoRaw(ctx)
	if err != nil {
		x.add(Problem, fmt.Sprintf("load-watcher %s does not answer: %v", name, err), logs+"; docs/load.md has a check for each source")
		return nil
	}
	x.judgeLoad(name, answer, logs)
	return nil
}

// judgeLoad judges the answer of a load-watcher.
func (x *examination) judgeLoad(name string, answer []byte, logs string) {
	reading, err := wire.Decode(bytes.NewReader(answer))
	if err != nil {
		x.add(Problem, fmt.Sprintf("load-watcher %s answers what is no load: %v", name, err), logs)
		return
	}
	if age := x.now.Sub(reading.Time); age > loadAge {
		x.add(Problem, fmt.Sprintf("the load of %s is %s old; older than %s it is not used, and nodes are judged by limits only", name, age.Round(time.Second), loadAge), logs)
		return
	}
	var without []string
	for i := range x.nodes {
		if _, known := reading.Nodes[x.nodes[i].Name]; !known {
			without = append(without, x.nodes[i].Name)
		}
	}
	slices.Sort(without)
	switch {
	case len(x.nodes) > 0 && len(without) == len(x.nodes):
		x.add(Problem, fmt.Sprintf("%s has load of %d nodes, and none of them has the name of a node here (%s)", name, len(reading.Nodes), some(without)),
			"tell it how the source names nodes: --node-label, or addresses (docs/load.md)")
	case len(without) > 0:
		x.add(Warning, fmt.Sprintf("%s has no load of %d of %d nodes: %s", name, len(without), len(x.nodes), some(without)), "look whether the source measures them: plimsoll load top")
	default:
		x.ok("%s has load of all %d nodes, %s old", name, len(x.nodes), x.now.Sub(reading.Time).Round(time.Second))
	}
}
