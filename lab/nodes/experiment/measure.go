package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
)

// maxPressure is the pressure of the machine above which a run is void.
const maxPressure = 0.05

// Result is what was measured in a run. It is the raw record.
type Result struct {
	Run      string    `json:"run"`
	History  history   `json:"history"`
	Seed     int       `json:"seed"`
	Arm      string    `json:"arm"`
	Start    time.Time `json:"start"`
	Settings settings  `json:"settings"`
	// Pressure is the share of the time in which a program with the work of a latency service waited for a processor of the machine,
	// outside of the quotas of nodes. A run with more than 5 % is void. Floor is the share of its requests that were late.
	Pressure float64 `json:"pressure"`
	Floor    float64 `json:"floor"`
	Void     bool    `json:"void"`
	// Pending is the number of pods that did not run, WaitSeconds the longest time from the creation of a pod to its binding.
	Pending     int          `json:"pending"`
	WaitSeconds float64      `json:"waitSeconds"`
	Nodes       []NodeResult `json:"nodes"`
	// LatencyMS are quantiles over the requests to all nodes: p50, p99 and p99.9.
	LatencyMS map[string]float64 `json:"latencyMS"`
}

// NodeResult is what was measured on a node. Amounts of CPU are in millicores.
type NodeResult struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
	// Demand is the mean of what the pods had to use by their own accounts, Used the mean of what they used by the kernel's.
	Demand float64 `json:"demand"`
	Used   float64 `json:"used"`
	// Peak is the highest demand of a step of recorded usage, with the overhead of pods; PredictedMean and Predicted are the mean and the
	// peak that the model predicted at the beginning of the measurement.
	Peak             float64 `json:"peak"`
	PredictedMean    float64 `json:"predictedMean"`
	Predicted        float64 `json:"predicted"`
	Periods          int64   `json:"periods"`
	ThrottledPeriods int64   `json:"throttledPeriods"`
	ThrottledSeconds float64 `json:"throttledSeconds"`
	// Kills is the number of containers that restarted.
	Kills    int `json:"kills"`
	Requests int `json:"requests"`
	Late     int `json:"late"`
	Failed   int `json:"failed"`
	// P50MS and P99MS are latencies in milliseconds.
	P50MS float64 `json:"p50MS"`
	P99MS float64 `json:"p99MS"`
}

// measure creates the pods of a run, measures them, and deletes them. If ctx ends, it deletes nothing: the cluster ends, too.
func (e *experiment) measure(ctx context.Context, r run) (*Result, error) {
	s := e.draw(e.sources, r.seed)
	result := &Result{Run: r.String(), History: r.history, Seed: r.seed, Arm: r.arm, Start: time.Now().UTC(), Settings: e.settings}
	defer e.deletePods(ctx)
	running, stop := context.WithCancel(ctx)
	defer stop()
	clients, err := e.startServices(running, schedulerNames[r.arm])
	if err != nil {
		return nil, err
	}
	epoch := time.Now()
	if err := e.createPods(ctx, s, schedulerNames[r.arm], epoch); err != nil {
		return nil, err
	}
	if err := e.awaitRunning(ctx, len(s.order)+e.Nodes, result); err != nil {
		return nil, err
	}
	if err := sleep(ctx, e.Settle); err != nil {
		return nil, err
	}
	if err := e.observe(ctx, result, s, clients, epoch); err != nil {
		return nil, err
	}
	return result, nil
}

// sleep waits for some time, or until ctx ends, which is an error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// observe measures.
func (e *experiment) observe(ctx context.Context, result *Result, s *scenario, clients []*client, epoch time.Time) error {
	list, err := e.cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	accounts, err := readAccounts(ctx, list.Items)
	if err != nil {
		return err
	}
	result.Nodes = make([]NodeResult, e.Nodes)
	before := make([]realnodes.Usage, e.Nodes)
	for i, node := range e.cluster.Nodes {
		n := &result.Nodes[i]
		n.Node = node.Name
		n.PredictedMean, n.Predicted = e.observer.predict(list.Items, node.Name)
		if before[i], err = e.cluster.Usage(node); err != nil {
			return err
		}
		clients[i].take()
	}
	start := time.Now()
	outside, err := runReference(ctx, e.Measure)
	if err != nil {
		return err
	}
	result.Pressure, result.Floor = outside.pressure, outside.late
	result.Void = result.Pressure > maxPressure
	seconds := time.Since(start).Seconds()
	var all []time.Duration
	for i, node := range e.cluster.Nodes {
		after, err := e.cluster.Usage(node)
		if err != nil {
			return err
		}
		n := &result.Nodes[i]
		n.Used = 1000 * (after.CPUSeconds - before[i].CPUSeconds) / seconds
		n.Periods, n.ThrottledPeriods = after.Periods-before[i].Periods, after.ThrottledPeriods-before[i].ThrottledPeriods
		n.ThrottledSeconds = after.ThrottledSeconds - before[i].ThrottledSeconds
		if n.Periods == 0 {
			return fmt.Errorf("%s: the kernel does not enforce its size", n.Node)
		}
		latency, failed := clients[i].take()
		n.addLatency(latency, failed)
		all = append(all, latency...)
	}
	result.LatencyMS = map[string]float64{"p50": quantile(all, 0.5), "p99": quantile(all, 0.99), "p99.9": quantile(all, 0.999)}
	return e.addDemand(ctx, result, s, accounts, seconds, start.Sub(epoch))
}

// addDemand adds the demand of nodes by the accounts of their pods, and its peak over the steps of the measurement.
func (e *experiment) addDemand(
	ctx context.Context, result *Result, s *scenario, before map[string]float64, seconds float64, from time.Duration,
) error {
	list, err := e.cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	after, err := readAccounts(ctx, list.Items)
	if err != nil {
		return err
	}
	workloads := map[string]*workload{}
	for _, w := range s.workloads {
		workloads[w.name] = w
	}
	step := time.Duration(float64(stepSeconds*time.Second) / e.Compression)
	for i := range result.Nodes {
		n := &result.Nodes[i]
		peaks := make([]float64, int(e.Measure/step)+1)
		for j := range list.Items {
			p := &list.Items[j]
			if p.Spec.NodeName != n.Node {
				continue
			}
			app := p.Labels["app"]
			n.Demand += 1000 * (after[p.Name] - before[p.Name]) / seconds
			for _, status := range p.Status.ContainerStatuses {
				n.Kills += int(status.RestartCount)
			}
			w := workloads[app]
			if w != nil {
				n.Pods = append(n.Pods, app)
			}
			for k := range peaks {
				peaks[k] += overhead
				if w != nil {
					at := from + time.Duration(k)*step
					peaks[k] += (w.demandAt(0, at, &e.settings) + w.demandAt(1, at, &e.settings)) / 2
				} else {
					peaks[k] += serviceDemand - overhead
				}
			}
			result.WaitSeconds = max(result.WaitSeconds, waitOf(p))
		}
		slices.Sort(n.Pods)
		n.Peak = slices.Max(peaks)
	}
	return nil
}

// waitOf returns the time from the creation of a pod to its binding. Kubernetes counts in whole seconds.
func waitOf(p *v1.Pod) float64 {
	for _, condition := range p.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue {
			return condition.LastTransitionTime.Sub(p.CreationTimestamp.Time).Seconds()
		}
	}
	return 0
}

// readAccounts returns the CPU time in seconds that each pod had to use so far.
func readAccounts(ctx context.Context, pods []v1.Pod) (map[string]float64, error) {
	wanted := map[string]float64{}
	var mu sync.Mutex
	var running sync.WaitGroup
	var failed error
	client := &http.Client{Timeout: 20 * time.Second}
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != v1.PodRunning || p.Status.PodIP == "" {
			continue
		}
		running.Go(func() {
			var account struct {
				Wanted float64 `json:"wanted"`
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Status.PodIP+":8080/account", nil)
			if err == nil {
				var response *http.Response
				if response, err = client.Do(request); err == nil {
					err = json.NewDecoder(response.Body).Decode(&account)
					response.Body.Close()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			wanted[p.Name] = account.Wanted
			if err != nil {
				failed = fmt.Errorf("account of pod %s: %w", p.Name, err)
			}
		})
	}
	running.Wait()
	return wanted, failed
}

// print prints a run for people.
func (r *Result) print(w io.Writer) {
	sums, void := r.figures(), ""
	if r.Void {
		void = " VOID"
	}
	fmt.Fprintf(w, "%-20s late %5.2f %% above the floor of %.2f %% p99 %6.1f ms throttled %4.1f %% of the periods,"+
		" pressure %.1f %%, pending %d%s\n",
		r.Run, 100*sums.late/max(sums.requests, 1), 100*r.Floor, r.LatencyMS["p99"], 100*sums.throttled/max(sums.periods, 1),
		100*r.Pressure, r.Pending, void)
	for _, n := range r.Nodes {
		fmt.Fprintf(w, "  %s demand %3.0fm used %3.0fm peak %3.0fm predicted %3.0f/%3.0fm"+
			" throttled %3d/%3d late %4d/%4d p99 %5.1f ms  %s\n",
			n.Node, n.Demand, n.Used, n.Peak, n.PredictedMean, n.Predicted,
			n.ThrottledPeriods, n.Periods, n.Late, n.Requests, n.P99MS, strings.Join(n.Pods, " "))
	}
}
