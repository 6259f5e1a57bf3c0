package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/service"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// workload is the input of all cases. The program with the released code reads the same fields.
type workload struct {
	// Pod is the pending pod that nodes are scored for.
	Pod *v1.Pod `json:"pod"`
	// Nodes has a node and its pods by the number of pods.
	Nodes map[string]node `json:"nodes"`
	// Clusters are the clusters of the fleet, all of one cluster set, and Decisions the existing decisions.
	Clusters  []*clusterv1.ManagedCluster         `json:"clusters"`
	Decisions []*clusterv1beta1.PlacementDecision `json:"decisions"`
	// Placements to decide, by the name of the case.
	Placements map[string]*clusterv1beta1.Placement `json:"placements"`
}

type node struct {
	Node *v1.Node  `json:"node"`
	Pods []*v1.Pod `json:"pods"`
}

// The size of the fleet.
const (
	clusters        = 5000
	otherPlacements = 100
	selected        = 10
)

// namespace is the namespace of all placements.
const namespace = "team"

// podCounts are the numbers of pods on a node.
var podCounts = []int{10, 110, 250}

// newWorkload returns the workload.
func newWorkload() *workload {
	w := &workload{
		Pod: schedtest.CPU("pending", "", "1", "2"), Nodes: map[string]node{}, Placements: map[string]*clusterv1beta1.Placement{},
	}
	for _, pods := range podCounts {
		n := node{Node: schedtest.Node(nodeName(pods), "cpu", "256", "memory", "1Ti")}
		for i := range pods {
			n.Pods = append(n.Pods, schedtest.Pod(fmt.Sprint(n.Node.Name, "-", i), n.Node.Name,
				schedtest.Amounts("cpu", "250m", "memory", "1Gi"), schedtest.Amounts("cpu", "1", "memory", "2Gi")))
		}
		w.Nodes[fmt.Sprint(pods)] = n
	}
	for i := range clusters {
		w.Clusters = append(w.Clusters, newCluster(i))
	}
	for p := range otherPlacements {
		w.Decisions = append(w.Decisions, newDecision(fmt.Sprintf("other-%03d", p), 37*p, 211))
	}
	for name, predicate := range map[string]clusterv1beta1.ClusterSelector{
		"plain": {},
		"label": {LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "environment", Operator: metav1.LabelSelectorOpIn, Values: []string{"prod", "stage"}},
		}}},
		"cel": {CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{
			`managedCluster.metadata.labels["environment"] in ["prod", "stage"]`,
		}}},
	} {
		w.Placements[name] = newPlacement(name, predicate)
		w.Decisions = append(w.Decisions, newDecision(name, 0, 399)) // not divisible by 3: of all environments
	}
	return w
}

func nodeName(pods int) string { return fmt.Sprintf("node-%d", pods) }

// newCluster returns cluster i. Clusters have many sizes and are in three environments.
func newCluster(i int) *clusterv1.ManagedCluster {
	amounts := clusterv1.ResourceList{}
	for name, quantity := range schedtest.Amounts("cpu", fmt.Sprint(4+i*7919%997), "memory", fmt.Sprint(16+i*104729%4001, "Gi")) {
		amounts[clusterv1.ResourceName(name)] = quantity
	}
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(i), Labels: map[string]string{
		"environment": []string{"prod", "stage", "dev"}[i%3], "region": fmt.Sprint("region-", i%10), "vendor": "OpenShift",
		"cluster.open-cluster-management.io/clusterset": "all",
	}}}
	object.Status.Allocatable, object.Status.Capacity = amounts, amounts
	return object
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%04d", i%clusters) }

// newDecision returns the decisions of a placement: some clusters from the first one in steps.
func newDecision(placement string, first, step int) *clusterv1beta1.PlacementDecision {
	object := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: placement + "-decision-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: placement},
	}}
	for i := range selected {
		object.Status.Decisions = append(object.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: clusterName(first + i*step)})
	}
	return object
}

// newPlacement returns a placement with four prioritizers: two, and Balance and Steady, which are defaults.
func newPlacement(name string, selector clusterv1beta1.ClusterSelector) *clusterv1beta1.Placement {
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(name), Generation: 1,
	}}
	object.Spec.NumberOfClusters = new(int32(selected))
	policy := &object.Spec.PrioritizerPolicy
	for _, prioritizer := range []string{"ResourceAllocatableCPU", "ResourceAllocatableMemory"} {
		policy.Configurations = append(policy.Configurations, clusterv1beta1.PrioritizerConfig{
			ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: prioritizer},
			Weight:          1,
		})
	}
	if name != "plain" {
		object.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: selector}}
	}
	return object
}

// writeWorkload writes the workload to a file.
func writeWorkload(path string) error {
	raw, err := json.Marshal(newWorkload())
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// readWorkload reads a workload that writeWorkload has written.
func readWorkload(path string) (*workload, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w := &workload{}
	if err := json.Unmarshal(raw, w); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// newWatcher returns a load-watcher service with the load of all nodes, which is always current: a run takes minutes.
func newWatcher() http.Handler {
	u := load.Utilization{Mean: 0.25, StdDev: 0.05}
	reading := load.Reading{Source: "peers", Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for _, pods := range podCounts {
		reading.Nodes[nodeName(pods)] = load.Node{CPU: u, HasCPU: true, Memory: u, HasMemory: true}
	}
	store := load.NewStore(24*time.Hour, nil)
	served := service.New(service.Config{
		Store: store, Source: reading.Source, State: &service.State{}, Metrics: http.NotFoundHandler(),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		current := reading
		current.Time = time.Now()
		if err := store.Put(current); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		served.ServeHTTP(w, r)
	})
}
