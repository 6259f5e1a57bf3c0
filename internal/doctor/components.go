package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// The labels by which what the chart installs is known.
const (
	partOf    = "app.kubernetes.io/part-of=plimsoll"
	component = "app.kubernetes.io/component"
)

// page is how many objects are asked for at a time.
const page = 500

// readNodes looks for nodes that nothing can be placed on.
func (x *examination) readNodes(ctx context.Context) error {
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := x.kube.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return err
		}
		x.nodes = append(x.nodes, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	var unready []string
	for i := range x.nodes {
		if facts.ReadyStatus(&x.nodes[i]) != v1.ConditionTrue {
			unready = append(unready, x.nodes[i].Name)
		}
	}
	switch {
	case len(x.nodes) == 0:
		x.add(Problem, "the cluster has no nodes", "add some, or have an autoscaler make them")
	case len(unready) > 0:
		x.add(Warning, fmt.Sprintf("%d of %d nodes are not ready: %s", len(unready), len(x.nodes), some(unready)), "kubectl describe node "+unready[0])
	default:
		x.ok("%d nodes, all ready", len(x.nodes))
	}
	return nil
}

// some joins the first names, and the number of the remaining ones.
func some(names []string) string { return facts.Abbreviate(names, 3, ", ") }

// readComponents finds the Deployments of Plimsoll, and whether they run.
func (x *examination) readComponents(ctx context.Context) error {
	list, err := x.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: partOf})
	if err != nil {
		return err
	}
	x.components = list.Items
	if len(x.components) == 0 {
		x.add(Warning, "nothing of Plimsoll is installed (no Deployment with the label "+partOf+")", "helm install plimsoll charts/plimsoll: docs/install.md; a component that runs elsewhere is not seen here")
		return nil
	}
	var fine []string
	for i := range x.components {
		d := &x.components[i]
		want := int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		name := facts.Name(d)
		switch {
		case want == 0:
			x.add(Warning, name+" is scaled to 0", fmt.Sprintf("kubectl scale -n %s deployment %s --replicas 1", d.Namespace, d.Name))
		case d.Status.ReadyReplicas < want:
			x.add(Problem, fmt.Sprintf("%s: %d of %d replicas are ready%s", name, d.Status.ReadyReplicas, want, whyNot(d)), fmt.Sprintf("kubectl describe -n %s pods -l %s", d.Namespace, selectorOf(d)))
		default:
			fine = append(fine, fmt.Sprintf("%s (%d)", d.Name, want))
		}
	}
	if len(fine) > 0 {
		x.ok("ready: %s", strings.Join(fine, ", "))
	}
	return nil
}

func selectorOf(d *appsv1.Deployment) string { return metav1.FormatLabelSelector(d.Spec.Selector) }

// whyNot returns what the Deployment itself says.
func whyNot(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Status != v1.ConditionTrue && c.Message != "" {
			return " (" + c.Message + ")"
		}
	}
	return ""
}

// ofKind returns the Deployments of one component.
func (x *examination) ofKind(name string) []*appsv1.Deployment {
	var out []*appsv1.Deployment
	for i := range x.components {
		if x.components[i].Labels[component] == name {
			out = append(out, &x.components[i])
		}
	}
	return out
}

// leaders looks whether each lease of Plimsoll is held, and renewed.
func (x *examination) leaders(ctx context.Context) error {
	if len(x.components) == 0 {
		x.ok("nothing is installed that would lead")
		return nil
	}
	list, err := x.kube.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: partOf})
	if err != nil {
		return err
	}
	for i := range list.Items {
		lease := &list.Items[i]
		name := facts.Name(lease)
		fix := fmt.Sprintf("kubectl logs -n %s -l %s,%s=%s: a replica that cannot reach the API server, or may not write the lease, does not lead", lease.Namespace, partOf, component, lease.Labels[component])
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
			x.add(Problem, "nobody leads: lease "+name+" has no holder", fix)
			continue
		}
		lasts := 15 * time.Second
		if lease.Spec.LeaseDurationSeconds != nil {
			lasts = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
		}
		if age := x.now.Sub(lease.Spec.RenewTime.Time); age > 2*lasts {
			x.add(Problem, fmt.Sprintf("nobody leads: lease %s was last renewed %s ago by %s", name, age.Round(time.Second), *lease.Spec.HolderIdentity), fix)
			continue
		}
		x.ok("%s leads by %s", *lease.Spec.HolderIdentity, name)
	}
	return nil
}
