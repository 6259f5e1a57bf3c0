package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

const (
	// promiseTime is the time in seconds after which a promise ends, as docs/placement.md states it.
	promiseTime = 10 * 60
	// probeReplicas are more replicas than fit any cluster.
	probeReplicas = 1_000_000
	// fresh is the report of a member whose ClusterCapacity is valid. Other reports are in reportKinds.
	fresh = "fresh"
)

var (
	// fitNames are the placements that name a workload. Each time one is created, its workload gets a new number: a cluster may still run
	// pods of the last one.
	fitNames = []string{"fit-1", "fit-2", "fit-3", "fit-4"}
	// memberNames are the clusters that report their capacity: the first ones, which conditions list first.
	memberNames = clusterNames[:3]
	// reportKinds are the ways in which a ClusterCapacity is of no use: it was deleted, is old, from the future, or about another cluster.
	reportKinds = []string{"lost", "late", "future", "foreign"}
)

// member is a cluster with one node, and the pods of workloads that run on it.
type member struct {
	cores   int64
	report  string
	running map[string]int64
	// shown are the pods in the present ClusterCapacity, which was observed at a Unix time.
	shown      map[string]int64
	observedAt int64
	// most are the most cores that a valid ClusterCapacity has had in this round, 0 if there was none.
	most int64
	// shownFirst are the pods that were shown at the start of the round.
	shownFirst map[string]int64
	// wasDeleted is true if the cluster was deleted in this round: its promises ended.
	wasDeleted bool
}

// free returns the cores that the present ClusterCapacity has.
func (m *member) free() int64 {
	free := m.cores
	for _, pods := range m.shown {
		free -= pods
	}
	return max(free, 0)
}

// promise is a promise to a workload, as a PlacementDecision has it.
type promise struct {
	workload string
	Replicas int64 `json:"replicas"`
	Since    int64 `json:"since"`
	Before   int64 `json:"before"`
}

// String returns the promise in one line.
func (p promise) String() string {
	return fmt.Sprintf("%s: %d since %d", p.workload, p.Replicas, p.Since)
}

// promises is the part of the world with promises.
type promises struct {
	members map[string]*member
	// numbers are how often each placement has been created, and replicas the replicas of the present ones by workload.
	numbers  map[string]int
	replicas map[string]int64
	// made are the promises in the decisions by cluster when they were last read, and madeFirst at the start of the round.
	made, madeFirst map[string][]promise
	probes          int
	publishedAt     time.Time
}

// newPromises returns members without pods.
func newPromises() *promises {
	p := &promises{members: map[string]*member{}, numbers: map[string]int{}, replicas: map[string]int64{}}
	for _, name := range memberNames {
		p.members[name] = &member{running: map[string]int64{}, report: "lost"}
	}
	return p
}

// startRound begins a round. All promises must have been read.
func (p *promises) startRound() {
	p.madeFirst = p.made
	for _, m := range p.members {
		if m.most, m.shownFirst, m.wasDeleted = 0, m.shown, false; m.report == fresh {
			m.most = m.cores
		}
	}
}

// applyFit applies a change of placements with workloads, and of the clusters for them.
func (w *world) applyFit(ctx context.Context, s step) error {
	switch s.verb {
	case "fit":
		if err := w.deleteFit(ctx, s.args[0]); err != nil {
			return err
		}
		return w.createFit(ctx, s.args[0], int64(number(s.args[1])))
	case "unfit":
		return w.deleteFit(ctx, s.args[0])
	case "capacity":
		m := w.members[s.args[0]]
		m.cores, m.report = int64(number(s.args[1])), fresh
		return w.publish(ctx, s.args[0])
	case "uncapacity":
		w.members[s.args[0]].report = s.args[1]
		return w.publish(ctx, s.args[0])
	case "start":
		return w.startPods(ctx, number(strings.TrimSuffix(s.args[0], "%")))
	}
	return fmt.Errorf("unknown step %s", s)
}

// workloadOf returns the name of the workload of the present placement of a name.
func (w *world) workloadOf(name string) string { return fmt.Sprintf("%s-%d", name, w.numbers[name]) }

// createFit creates a placement with a workload of pods of 1 CPU, which excludes clusters that the replicas do not fit.
func (w *world) createFit(ctx context.Context, name string, replicas int64) error {
	w.numbers[name]++
	w.replicas[w.workloadOf(name)] = replicas
	clusters := 1
	if name == fitNames[0] {
		clusters = 2
	}
	return w.api.Create(ctx, placementFor(name, w.workloadOf(name), replicas, clusters))
}

// placementFor returns a placement with a workload.
func placementFor(name, workload string, replicas int64, clusters int) *v1beta1.Placement {
	text := fmt.Sprintf(`
metadata:
  name: %s
  namespace: team
  annotations:
    plimsoll.dev/workload: '{"replicas":%d,"requireFit":true,"template":{"kind":"Deployment","metadata":{"name":%q},
      "spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}}}}'
spec:
  numberOfClusters: %d
  prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: FitReplicas}, weight: 1}]}`,
		name, replicas, workload, clusters)
	p := &v1beta1.Placement{}
	if err := yaml.Unmarshal([]byte(text), p); err != nil {
		panic(err) // constant but for names and numbers
	}
	return p
}

// deleteFit deletes the present placement of a name.
func (w *world) deleteFit(ctx context.Context, name string) error {
	delete(w.replicas, w.workloadOf(name))
	return w.delete(ctx, &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}})
}

// readPromises reads the promises in all PlacementDecisions. It returns why they do not match the decisions, "" if they do.
func (w *world) readPromises(ctx context.Context) (string, error) {
	var list clusterv1beta1.PlacementDecisionList
	if err := w.api.List(ctx, &list, client.InNamespace(team)); err != nil {
		return "", err
	}
	var placements v1beta1.PlacementList
	if err := w.api.List(ctx, &placements, client.InNamespace(team)); err != nil {
		return "", err
	}
	uids := map[string]types.UID{}
	for i := range placements.Items {
		uids[placements.Items[i].Name] = placements.Items[i].UID
	}
	w.made = map[string][]promise{}
	selected := map[string]int{}
	for i := range list.Items {
		d := &list.Items[i]
		name := d.Labels[clusterv1beta1.PlacementLabel]
		if !strings.HasPrefix(name, "fit-") {
			continue
		}
		workload := w.workloadOf(name)
		if owner := metav1.GetControllerOf(d); owner == nil || owner.UID != uids[name] {
			return fmt.Sprintf("decision of a deleted placement %s", name), nil
		}
		of := map[string]promise{}
		if text := d.Annotations[v1beta1.AnnotationReplicas]; text != "" {
			if err := json.Unmarshal([]byte(text), &of); err != nil {
				return "", err
			}
		}
		for _, c := range d.Status.Decisions {
			p, known := of[c.ClusterName]
			if !known || p.Replicas != w.replicas[workload] {
				return fmt.Sprintf("placement %s has a decision for %s with promise %+v", name, c.ClusterName, p), nil
			}
			p.workload = workload
			w.made[c.ClusterName] = append(w.made[c.ClusterName], p)
			selected[name]++
		}
	}
	for i := range placements.Items {
		p, name := &placements.Items[i], placements.Items[i].Name
		if !slices.Contains(fitNames, name) {
			continue
		}
		if got := p.Status.NumberOfSelectedClusters; len(p.Status.Conditions) == 0 || int(got) != selected[name] {
			return fmt.Sprintf("the status of placement %s has %d clusters, its decisions have %d", name, got, selected[name]), nil
		}
	}
	return "", nil
}

// startPods starts a share in percent of the promised pods.
func (w *world) startPods(ctx context.Context, percent int) error {
	if _, err := w.readPromises(ctx); err != nil {
		return err
	}
	for cluster, made := range w.made {
		for _, p := range made {
			if m := w.members[cluster]; m != nil {
				m.running[p.workload] = max(m.running[p.workload], p.Replicas*int64(percent)/100)
			}
		}
	}
	return nil
}

// publish writes the ClusterCapacity of a member. Pods of placements that do not select the cluster have ended.
func (w *world) publish(ctx context.Context, name string) error {
	m, now := w.members[name], time.Now()
	object := &capacityv1alpha1.ClusterCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: capacityv1alpha1.Name}}
	m.shown = map[string]int64{}
	for workload, pods := range m.running {
		if slices.ContainsFunc(w.made[name], func(p promise) bool { return p.workload == workload }) {
			m.shown[workload] = pods
		} else {
			delete(m.running, workload)
		}
	}
	cluster := name
	switch m.report {
	case "lost":
		return w.delete(ctx, object)
	case "late":
		now = now.Add(-20 * time.Minute)
	case "future":
		now = now.Add(10 * time.Minute)
	case "foreign":
		cluster = "another"
	default:
		m.most = max(m.most, m.cores)
	}
	m.observedAt = now.Unix()
	status := capacityv1alpha1.ClusterCapacityStatus{
		Cluster: cluster, ObservedAt: metav1.Unix(m.observedAt, 0), Nodes: 1, Classes: []capacityv1alpha1.NodeClass{{}},
		Groups: []capacityv1alpha1.NodeGroup{{Nodes: 1, Free: v1.ResourceList{
			v1.ResourceCPU: *resource.NewQuantity(m.free(), resource.DecimalSI), v1.ResourcePods: resource.MustParse("1000"),
		}}},
	}
	for workload, pods := range m.shown {
		status.Recent = append(status.Recent, capacityv1alpha1.RecentWorkload{Namespace: "team", Name: workload, Pods: int32(pods)})
	}
	object.Status = status
	if err := w.api.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := w.api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	object.Status = status
	return w.api.Update(ctx, object)
}

// publishAll writes the ClusterCapacities of all members, as agents do from time to time.
func (w *world) publishAll(ctx context.Context) error {
	w.publishedAt = time.Now()
	for _, name := range memberNames {
		if err := w.publish(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// left returns the cores of a member that no promise uses, by the rules of docs/placement.md, -1 if its ClusterCapacity is of no use.
func (m *member) left(made []promise, now int64) int64 {
	if m.report != fresh {
		return -1
	}
	left := m.free()
	for _, p := range made {
		pods := p.Replicas
		if m.observedAt > p.Since {
			pods -= max(m.shown[p.workload]-p.Before, 0)
		}
		if now-p.Since <= promiseTime {
			left -= max(pods, 0)
		}
	}
	return max(left, 0)
}

// unsettledFits returns why the placements with workloads are not decided as the promises demand, "" if they are.
func (w *world) unsettledFits(ctx context.Context) (string, error) {
	if reason, err := w.readPromises(ctx); err != nil || reason != "" {
		return reason, err
	}
	now := time.Now().Unix()
	for workload, replicas := range w.replicas {
		holds := func(made []promise) bool {
			return slices.ContainsFunc(made, func(p promise) bool { return p.workload == workload })
		}
		isSelected := slices.ContainsFunc(clusterNames, func(name string) bool { return holds(w.made[name]) })
		for _, name := range memberNames {
			left := w.members[name].left(w.made[name], now)
			if _, exists := w.clusters[name]; !exists || isSelected || left < replicas {
				continue
			}
			// The placement may have been decided just before the room became free: the next ClusterCapacity decides it again.
			if time.Since(w.publishedAt) > 2*time.Second {
				if err := w.publishAll(ctx); err != nil {
					return "", err
				}
			}
			return fmt.Sprintf("placement %s of %d replicas has no cluster, %s has %d cores left", workload, replicas, name, left), nil
		}
	}
	return w.probe(ctx)
}

// fitPattern matches the reason why the probe does not fit a cluster.
var fitPattern = regexp.MustCompile(fmt.Sprintf(`(cluster-\d+): (\d+) replicas? fits? of %d`, probeReplicas))

// probe asks the controller how many replicas fit each member, with a placement of more replicas than fit, and returns how the answer
// differs from what the promises in the decisions leave, "" if it does not.
func (w *world) probe(ctx context.Context) (string, error) {
	name := fmt.Sprintf("probe-%d", w.probes)
	var p v1beta1.Placement
	if err := w.api.Get(ctx, client.ObjectKey{Namespace: team, Name: name}, &p); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		return name + " is new", w.api.Create(ctx, placementFor(name, name, probeReplicas, 1))
	}
	c := meta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
	if c == nil {
		return name + " is not decided", nil
	}
	got := map[string]int64{}
	for _, match := range fitPattern.FindAllStringSubmatch(c.Message, -1) {
		got[match[1]], _ = strconv.ParseInt(match[2], 10, 64)
	}
	w.probes++
	if err := w.delete(ctx, &p); err != nil {
		return "", err
	}
	for _, cluster := range memberNames {
		left := w.members[cluster].left(w.made[cluster], time.Now().Unix())
		fits, known := got[cluster]
		if _, exists := w.clusters[cluster]; exists && (known != (left >= 0) || known && fits != left) {
			return fmt.Sprintf("%s has %d cores left after the promises %v in the decisions, the controller says: %s",
				cluster, left, w.made[cluster], c.Message), nil
		}
	}
	return "", nil
}

// checkPromises checks the promises in all clusters.
func (w *world) checkPromises() error {
	for _, name := range memberNames {
		m := w.members[name]
		if err := checkPromises(name, w.made[name], w.madeFirst[name], m.shownFirst, m.most); err != nil {
			return err
		}
		if m.wasDeleted {
			continue
		}
		if err := checkKept(name, w.made[name], w.madeFirst[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkKept checks that the promises in a cluster at the start of a round did not begin again: a controller that has lost them would make
// new ones, for pods that run already.
func checkKept(cluster string, made, known []promise) error {
	for _, now := range made {
		for _, first := range known {
			if now.workload == first.workload && now != first {
				return fmt.Errorf("promise lost: cluster %s had the promise %+v, and has %+v", cluster, first, now)
			}
		}
	}
	return nil
}

// checkPromises checks that each promise that was made in a cluster in this round left room for all promises before: the sum of the
// replicas that were promised, and of the pods of promises that had ended, is at most the most cores that the cluster reported. Known are
// the promises before the round, and shown the pods that the hub knew since its start.
func checkPromises(cluster string, made, known []promise, shown map[string]int64, most int64) error {
	for _, last := range made {
		if slices.Contains(known, last) {
			continue
		}
		sum := int64(0)
		for _, p := range made {
			switch {
			case p.Since > last.Since: // later
			case last.Since-p.Since <= promiseTime:
				sum += p.Replicas
			default:
				sum += min(p.Replicas, shown[p.workload])
			}
		}
		if sum > most {
			return fmt.Errorf("room promised twice: the placements of %s have %d replicas with the promise %s, it had %d cores at most: %v",
				cluster, sum, last, most, made)
		}
	}
	return nil
}
