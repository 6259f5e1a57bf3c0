package chaos

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

const (
	// Namespaces: team has the placements, systemNamespace the controllers, and podNamespace the placeholder
	// pods.
	team            = "team"
	systemNamespace = "plimsoll-system"
	podNamespace    = "plimsoll-placeholders"
	// nodesPerPool is the number of nodes of 16 CPUs of each pool.
	nodesPerPool = 6
	// grouped is the placement with groups of two clusters.
	grouped = "groups"
	// fixedPods is the number of pods of 1 CPU in the second pool.
	fixedPods = 20
)

// The names of the objects that change.
var (
	clusterNames   = []string{"cluster-1", "cluster-2", "cluster-3", "cluster-4", "cluster-5", "cluster-6", "cluster-7", "cluster-8"}
	placementNames = []string{"all", "two", "steady", grouped}
	// policyNames are also the names of the pools. The placeholders of the second one are Deployments.
	policyNames = []string{"general", "fixed"}
)

// state is the state of the world as far as changes of the schedule determine it.
type state struct {
	// clusters are the CPUs of the existing clusters, placements the number of clusters of each
	// placement, 0 for all.
	clusters   map[string]int
	placements map[string]int
	pods       int
	// rates are the rates of the policies in percent.
	rates map[string]int
	// mirrored is the number of placeholders of the first policy that mirror a workload.
	mirrored int
}

// clone returns a copy.
func (s state) clone() state {
	s.clusters, s.placements, s.rates = maps.Clone(s.clusters), maps.Clone(s.placements), maps.Clone(s.rates)
	return s
}

// selected returns the number of clusters that a placement selects, 0 if it does not exist.
func (s state) selected(placement string) int {
	n, exists := s.placements[placement]
	switch {
	case !exists:
		return 0
	case n == 0:
		return len(s.clusters)
	}
	return min(n, len(s.clusters))
}

// requests returns the CPUs that the pods of a pool request.
func (s state) requests(policy string) int {
	if policy == policyNames[0] {
		return s.pods
	}
	return fixedPods
}

// placeholders returns the number of placeholders of 1 CPU that a policy needs: the rate of the requests,
// and at least one, which is as large as the biggest pod, plus the mirrors of a workload.
func (s state) placeholders(policy string) int64 {
	rate, exists := s.rates[policy]
	if !exists {
		return 0
	}
	return max(1, int64(math.Ceil(float64(s.requests(policy)*rate)/100))) + s.mirrors(policy)
}

// mirrors returns the number of placeholders of a policy that mirror the workload.
func (s state) mirrors(policy string) int64 {
	if _, exists := s.rates[policy]; !exists || policy != policyNames[0] {
		return 0
	}
	return int64(s.mirrored)
}

// world is the cluster and the fleet that the controllers observe.
type world struct {
	state
	*promises

	api client.Client
	// history are the states of this round, before has the number of placeholders of each policy at the start
	// of the round. tampered counts, for placements and policies, the deletions of their objects in this round.
	history  []state
	before   map[string]int64
	tampered map[string]int
}

// newWorld creates the initial objects.
func newWorld(t *testing.T, api client.Client) *world {
	t.Helper()
	w := &world{
		api: api, state: state{clusters: map[string]int{}, placements: map[string]int{}, rates: map[string]int{}}, promises: newPromises(),
	}
	create := func(objects ...client.Object) {
		for _, object := range objects {
			if err := api.Create(t.Context(), object); err != nil {
				t.Fatalf("%T %s: %v", object, object.GetName(), err)
			}
		}
	}
	create(
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: podNamespace}},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}},
		&clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: "fleet"},
			Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
				SelectorType: clusterv1beta2.ExclusiveClusterSetLabel,
			}},
		},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: team},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "fleet"},
		},
	)
	create(workload())
	for _, name := range memberNames {
		create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, pool := range policyNames {
		for i := range nodesPerPool {
			create(node(nodeName(pool, i), pool))
		}
	}
	for i := range fixedPods {
		create(pod(policyNames[1], i))
	}
	steps := []string{
		"pods 40",
		"mirror 2",
		"rate general 10%",
		"rate fixed 20%",
		"placement all 0",
		"placement two 2",
		"placement steady 3",
		"placement groups 4",
		"capacity cluster-1 12",
		"capacity cluster-2 8",
		"capacity cluster-3 16",
		"fit fit-1 5",
		"fit fit-2 6",
		"fit fit-3 7",
	}
	for i, name := range clusterNames {
		steps = append(steps, fmt.Sprintf("cluster %s %d", name, 10*(i+1)))
	}
	for _, line := range steps {
		words := strings.Fields(line)
		if err := w.apply(t.Context(), step{words[0], words[1:]}); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	w.startRound()
	return w
}

// startRound begins a round.
func (w *world) startRound() {
	w.startHistory()
	w.promises.startRound()
}

// startHistory begins a new history, not a new round of the promises: w.made may be older than the controllers' last promises.
func (w *world) startHistory() { w.history, w.tampered = []state{w.clone()}, map[string]int{} }

// selectionBounds returns the smallest number of clusters that a placement may have in this round, and
// the number of changes that its decision may have: each change of the world can cause two. A placement
// with groups may lose a deleted cluster in the PlacementDecision of one group before its replacement is
// added to the PlacementDecision of another group.
func (w *world) selectionBounds(placement string) (floor, maxChanges int) {
	floor = w.history[0].selected(placement)
	deleted := 0
	for i, state := range w.history {
		floor = min(floor, state.selected(placement))
		if i > 0 && len(state.clusters) < len(w.history[i-1].clusters) {
			deleted++
		}
	}
	if placement == grouped {
		floor -= deleted
	}
	if w.tampered[placement] > 0 {
		floor = 0
	}
	return floor, 2*(len(w.history)-1) + 2*w.tampered[placement]
}

// countBounds returns the largest number of placeholders that a policy may have in this round, and the
// number of changes. The number for the rate is at most the number at the start of the round, which a cool-down
// may keep, or 5/4 of the number needed after a change, because placeholders that were sized for an earlier
// amount may be a fifth smaller. Each change of the world can cause two changes, plus one for each placeholder
// that is added or removed alone. Deleted objects cause further changes.
func (w *world) countBounds(policy string) (limit int64, maxChanges int) {
	rate, mirrors := w.before[policy]-w.history[0].mirrors(policy), int64(0)
	maxChanges = 2*(len(w.history)-1) + 6*w.tampered[policy]
	for i, state := range w.history {
		needed := state.placeholders(policy) - state.mirrors(policy)
		rate, mirrors = max(rate, (5*needed+3)/4), max(mirrors, state.mirrors(policy))
		if i > 0 {
			change := int(state.placeholders(policy) - w.history[i-1].placeholders(policy))
			maxChanges += max(change, -change)
		}
	}
	return rate + mirrors, maxChanges
}

// apply applies a change.
func (w *world) apply(ctx context.Context, s step) (err error) {
	switch s.verb {
	case "cluster":
		err = w.setCluster(ctx, s.args[0], number(s.args[1]))
	case "uncluster":
		err = w.deleteCluster(ctx, s.args[0])
	case "placement":
		err = w.setPlacement(ctx, s.args[0], number(s.args[1]))
	case "unplacement":
		delete(w.placements, s.args[0])
		err = w.delete(ctx, &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: s.args[0]}})
	case "delete-decision":
		w.tampered[s.args[0]]++
		err = w.api.DeleteAllOf(ctx, &clusterv1beta1.PlacementDecision{}, client.InNamespace(team),
			client.MatchingLabels{clusterv1beta1.PlacementLabel: s.args[0]})
	case "break-status":
		err = w.breakStatus(ctx, s.args[0])
	case "pods":
		err = w.setPods(ctx, number(s.args[0]))
	case "rate":
		err = w.setRate(ctx, s.args[0], number(strings.TrimSuffix(s.args[1], "%")))
	case "unrate":
		delete(w.rates, s.args[0])
		err = w.delete(ctx, &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: s.args[0]}})
	case "mirror":
		err = w.setMirror(ctx, number(s.args[0]))
	case "delete-object":
		w.tampered[s.args[0]]++
		err = w.deletePlaceholders(ctx, s.args[0])
	default:
		err = w.applyFit(ctx, s)
	}
	w.history = append(w.history, w.clone())
	return err
}

// number returns a number that parseSchedule has checked.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// delete deletes an object if it exists.
func (w *world) delete(ctx context.Context, object client.Object) error {
	return client.IgnoreNotFound(w.api.Delete(ctx, object))
}

// setCluster creates a cluster or changes its CPUs.
func (w *world) setCluster(ctx context.Context, name string, cpus int) error {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1beta2.ClusterSetLabel: "fleet"}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	if err := w.api.Create(ctx, cluster); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	w.clusters[name] = cpus
	patch := fmt.Appendf(nil, `{"status":{"allocatable":{"cpu":"%d","memory":"64Gi"},"capacity":{"cpu":"100","memory":"64Gi"}}}`, cpus)
	return w.api.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
}

// deleteCluster deletes a cluster. A few remain, so that placements always have clusters to select.
func (w *world) deleteCluster(ctx context.Context, name string) error {
	if len(w.clusters) <= 4 {
		return nil
	}
	delete(w.clusters, name)
	if m := w.members[name]; m != nil {
		m.wasDeleted = true
	}
	return w.delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// setPlacement creates a placement or changes its number of clusters. No prioritizer depends on other
// placements, so that the decision for a state of the hub does not depend on the order of decisions.
func (w *world) setPlacement(ctx context.Context, name string, n int) error {
	w.placements[name] = n
	placement := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}
	const exactly = `prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: %s}, weight: 1}]}`
	spec := fmt.Sprintf(exactly, "Steady")
	switch name {
	case "two":
		spec = fmt.Sprintf(exactly, "ResourceAllocatableCPU")
	case grouped:
		spec += "\ndecisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 2}}"
	}
	if err := yaml.Unmarshal([]byte(spec), &placement.Spec); err != nil {
		return err
	}
	if err := w.api.Create(ctx, placement); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	patch := []byte(`{"spec":{"numberOfClusters":null}}`)
	if n > 0 {
		patch = fmt.Appendf(nil, `{"spec":{"numberOfClusters":%d}}`, n)
	}
	return w.api.Patch(ctx, placement, client.RawPatch(types.MergePatchType, patch))
}

// breakStatus overwrites the status of a placement.
func (w *world) breakStatus(ctx context.Context, name string) error {
	placement := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"numberOfSelectedClusters":77,"conditions":null}}`))
	return client.IgnoreNotFound(w.api.Status().Patch(ctx, placement, patch))
}

// setPods creates or deletes pods of the first pool.
func (w *world) setPods(ctx context.Context, n int) error {
	for ; w.pods < n; w.pods++ {
		if err := w.api.Create(ctx, pod(policyNames[0], w.pods)); err != nil {
			return err
		}
	}
	for ; w.pods > n; w.pods-- {
		if err := w.api.Delete(ctx, pod(policyNames[0], w.pods-1), client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	return nil
}

// setRate creates a policy or changes its rate.
func (w *world) setRate(ctx context.Context, name string, percent int) error {
	w.rates[name] = percent
	policy := &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ResourceSlackSpec{
			MinRate: fmt.Sprint(percent, "%"), Pool: v1alpha1.Pool{NodeSelector: map[string]string{"pool": name}},
			Backend: v1alpha1.BackendCapacityBuffer,
		},
	}
	if name == policyNames[0] {
		policy.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{}
	} else {
		policy.Spec.Backend = v1alpha1.BackendDeployment
	}
	if err := w.api.Create(ctx, policy); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"minRate":"%d%%"}}`, percent)
	return w.api.Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch))
}

// setMirror sets the number of placeholders that the workload requests.
func (w *world) setMirror(ctx context.Context, n int) error {
	w.mirrored = n
	patch := []byte(`{"metadata":{"annotations":null}}`)
	if n > 0 {
		patch = fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, v1alpha1.AnnotationSlack, n)
	}
	return w.api.Patch(ctx, workload(), client.RawPatch(types.MergePatchType, patch))
}

// workload returns a workload without pods, whose template equals the pods of the first pool.
func workload() *appsv1.Deployment {
	labels := map[string]string{"app": "mirrored"}
	template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(policyNames[0], 0).Spec}
	template.Spec.NodeName, template.Spec.NodeSelector = "", map[string]string{"pool": policyNames[0]}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "mirrored"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
}

// deletePlaceholders deletes the objects that hold the placeholders of a policy.
func (w *world) deletePlaceholders(ctx context.Context, policy string) error {
	for _, kind := range placeholderKinds() {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		namespace := systemNamespace
		if kind.Kind == "Deployment" {
			namespace = podNamespace
		}
		err := w.api.DeleteAllOf(ctx, object, client.InNamespace(namespace), client.MatchingLabels{slack.PlaceholderLabel: policy})
		if err != nil {
			return err
		}
	}
	return nil
}

// placeholderKinds returns the kinds of all objects that hold placeholders.
func placeholderKinds() (kinds []schema.GroupVersionKind) {
	for _, backend := range slack.Backends() {
		kinds = append(kinds, backend.Kinds...)
	}
	return kinds
}

// nodeName returns the name of a node of a pool.
func nodeName(pool string, i int) string { return fmt.Sprintf("%s-%d", pool, i) }

// node returns a node of a pool.
func node(name, pool string) *v1.Node {
	return testcluster.ReadyNode(name, "16", "64Gi", map[string]string{"pool": pool})
}

// pod returns a pod of 1 CPU and 2Gi on a node of a pool.
func pod(pool string, i int) *v1.Pod {
	return testcluster.RunningPod(fmt.Sprintf("%s-%d", pool, i), nodeName(pool, i%nodesPerPool), "1", "2Gi")
}
