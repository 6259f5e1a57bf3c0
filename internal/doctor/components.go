package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Labels of the objects that the chart installs.
const (
	partOfLabel    = "app.kubernetes.io/part-of=plimsoll"
	componentLabel = "app.kubernetes.io/component"
)

// checkNodes reads the nodes and checks whether they are ready.
func (e *examination) checkNodes(ctx context.Context) error {
	list, err := e.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	e.nodes = list.Items
	var notReady, swapping []string
	for i := range e.nodes {
		if resources.ReadyStatus(&e.nodes[i]) != v1.ConditionTrue {
			notReady = append(notReady, e.nodes[i].Name)
		}
		if resources.HasSwap(&e.nodes[i]) {
			swapping = append(swapping, e.nodes[i].Name)
		}
	}
	if len(swapping) > 0 {
		e.add(Warning, fmt.Sprintf("%s configured with swap: %s: measured memory excludes swapped pages, "+
			"so a node that swaps looks emptier than it is",
			format.PartAre(len(swapping), len(e.nodes), "node"), abbreviate(swapping)),
			"disable swap on these nodes, or score their memory by requests and limits")
	}
	switch {
	case len(e.nodes) == 0:
		e.add(Problem, "the cluster has no nodes", "add nodes, or install an autoscaler that adds them")
	case len(notReady) > 0:
		e.add(Warning, fmt.Sprintf("%s not ready: %s", format.PartAre(len(notReady), len(e.nodes), "node"), abbreviate(notReady)),
			"kubectl describe node "+notReady[0])
	default:
		e.ok("%s, all ready", format.Of(len(e.nodes), "node"))
	}
	return nil
}

// conditionTimeout is the age at which a pending pod must have a condition from a scheduler.
const conditionTimeout = time.Minute

// checkSchedulers checks for pending pods that no scheduler has tried to schedule: the scheduler in
// spec.schedulerName does not run, or has no profile with this name.
func (e *examination) checkSchedulers(ctx context.Context) error {
	ignored := map[string][]string{}
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=Pending"}
	list, err := e.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if e.now.Sub(pod.CreationTimestamp.Time) > conditionTimeout && len(pod.Spec.SchedulingGates) == 0 && !isAttempted(pod) {
			ignored[pod.Spec.SchedulerName] = append(ignored[pod.Spec.SchedulerName], resources.Name(pod))
		}
	}
	names := slices.Sorted(maps.Keys(ignored))
	for _, name := range names {
		e.add(Problem, fmt.Sprintf("no scheduler has processed %s with %q in spec.schedulerName: %s",
			format.Of(len(ignored[name]), "pod"), name, abbreviate(ignored[name])),
			"set spec.schedulerName to the name of a running scheduler, such as "+v1.DefaultSchedulerName)
	}
	if len(names) == 0 {
		e.ok("%s pending, all processed by a scheduler or new", format.Are(len(list.Items), "pod"))
	}
	return nil
}

// isAttempted reports whether a scheduler has tried to schedule the pod, which sets PodScheduled.
func isAttempted(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
}

// abbreviate returns the first three names and the number of remaining names.
func abbreviate(names []string) string { return format.Abbreviate(names, 3, ", ") }

// checkComponents reads the Deployments of Plimsoll and checks whether their replicas are ready.
func (e *examination) checkComponents(ctx context.Context) error {
	list, err := e.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: partOfLabel})
	if e.unread = err != nil; e.unread {
		return err
	}
	e.components = list.Items
	if len(e.components) == 0 {
		e.add(Warning, "Plimsoll is not installed (no Deployment has the label "+partOfLabel+")",
			"install the chart (docs/install.md); components outside the cluster are not found")
		return nil
	}
	var ready []string
	for i := range e.components {
		d := &e.components[i]
		want, name := ptr.Deref(d.Spec.Replicas, 1), resources.Name(d)
		switch {
		case want == 0:
			e.add(Warning, name+" is scaled to 0", fmt.Sprintf("kubectl scale -n %s deployment %s --replicas 1", d.Namespace, d.Name))
		case d.Status.ReadyReplicas < want:
			e.add(Problem, fmt.Sprintf("%s: %s ready%s", name, format.PartAre(d.Status.ReadyReplicas, want, "replica"), failedCondition(d)),
				fmt.Sprintf("kubectl describe -n %s pods -l %s", d.Namespace, metav1.FormatLabelSelector(d.Spec.Selector)))
		default:
			ready = append(ready, fmt.Sprintf("%s (%d)", d.Name, want))
		}
	}
	if len(ready) > 0 {
		e.ok("ready: %s", strings.Join(ready, ", "))
	}
	return nil
}

// failedCondition returns the message of the first condition of a Deployment that is not true, in
// parentheses, or "".
func failedCondition(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Status != v1.ConditionTrue && c.Message != "" {
			return " (" + c.Message + ")"
		}
	}
	return ""
}

// componentsNamed returns the Deployments of a component.
func (e *examination) componentsNamed(name string) []*appsv1.Deployment {
	var out []*appsv1.Deployment
	for i := range e.components {
		if e.components[i].Labels[componentLabel] == name {
			out = append(out, &e.components[i])
		}
	}
	return out
}

// checkLeaders checks whether each lease of Plimsoll has a holder that renews it.
func (e *examination) checkLeaders(ctx context.Context) error {
	if len(e.components) == 0 {
		return nil
	}
	list, err := e.kube.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: partOfLabel})
	if err != nil {
		return err
	}
	for i := range list.Items {
		lease := &list.Items[i]
		name := resources.Name(lease)
		fix := fmt.Sprintf("kubectl logs -n %s -l %s,%s=%s: check that the replicas can reach the API server and may write the lease",
			lease.Namespace, partOfLabel, componentLabel, lease.Labels[componentLabel])
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder == "" || lease.Spec.RenewTime == nil {
			e.add(Problem, "no replica is the leader: lease "+name+" has no holder", fix)
			continue
		}
		duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second
		if age := e.now.Sub(lease.Spec.RenewTime.Time); age > 2*duration {
			e.add(Problem, fmt.Sprintf("no replica is the leader: lease %s was last renewed %s ago by %s",
				name, format.Age(age), holder), fix)
			continue
		}
		e.ok("%s leads, lease %s", holder, name)
	}
	return nil
}

// checkPlacements checks for misconfigured placements, and for clusters that report no
// resources.
func (e *examination) checkPlacements(ctx context.Context) error {
	var list v1beta1.PlacementList
	if err := e.client.List(ctx, &list); err != nil {
		if resources.IsNotServed(err) {
			e.absent("the cluster is not a hub: it has no CRD of Placement")
			return nil
		}
		return err
	}
	for i := range list.Items {
		name, conditions := resources.Name(&list.Items[i]), list.Items[i].Status.Conditions
		if c := meta.FindStatusCondition(conditions, "PlacementMisconfigured"); c != nil && c.Status == metav1.ConditionTrue {
			e.add(Problem, fmt.Sprintf("placement %s is misconfigured: %s", name, c.Message), "plimsoll placement explain "+name)
		}
	}
	return e.checkManagedClusters(ctx)
}

// checkManagedClusters checks for clusters that report no allocatable resources.
func (e *examination) checkManagedClusters(ctx context.Context) error {
	var list fleet.ManagedClusterList
	if err := e.client.List(ctx, &list); err != nil {
		if resources.IsNotServed(err) {
			return nil // reported by checkDefinitions
		}
		return err
	}
	var missing []string
	for i := range list.Items {
		if len(list.Items[i].Status.Allocatable) == 0 {
			missing = append(missing, list.Items[i].GetName())
		}
	}
	if len(missing) > 0 {
		e.add(Warning, fmt.Sprintf("%d of %d managed clusters report no allocatable resources: %s",
			len(missing), len(list.Items), abbreviate(missing)),
			"run the agent in them (docs/agent.md): they get the worst score of resource prioritizers")
	}
	return nil
}
