package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
)

const (
	namespace = "experiment"
	// late is the latency above which a request is late.
	late = 50 * time.Millisecond
	// timeout is the latency after which a client gives up. The request counts as late.
	timeout = 5 * time.Second
	// maxPressure is the pressure of the machine above which a run is void.
	maxPressure = 0.05
	// podTimeout bounds the time until all pods run or are gone.
	podTimeout = 2 * time.Minute
)

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

// measure creates the pods of a run, measures them, and deletes them.
func (e *experiment) measure(ctx context.Context, r run) (*Result, error) {
	s := e.draw(e.sources, r.seed)
	result := &Result{Run: r.String(), History: r.history, Seed: r.seed, Arm: r.arm, Start: time.Now().UTC(), Settings: e.settings}
	defer e.deletePods(context.WithoutCancel(ctx))
	clients, err := e.startServices(ctx, schedulerNames[r.arm])
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range clients {
			c.stop()
		}
	}()
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

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// podSpec returns a pod of the program work.
func podSpec(arguments []string, request int, scheduler string) v1.PodSpec {
	second := int64(1)
	requests := v1.ResourceList{}
	if request > 0 {
		requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(request), resource.DecimalSI)
		requests[v1.ResourceMemory] = resource.MustParse("16Mi")
	}
	none := false
	return v1.PodSpec{
		SchedulerName: scheduler, TerminationGracePeriodSeconds: &second, DNSPolicy: v1.DNSDefault, AutomountServiceAccountToken: &none,
		Containers: []v1.Container{{
			Name: "main", Image: realnodes.Image, ImagePullPolicy: v1.PullNever, Args: arguments,
			Resources: v1.ResourceRequirements{Requests: requests},
		}},
	}
}

// startServices creates the latency service of each node, which no scheduler places, and sends requests to them.
func (e *experiment) startServices(ctx context.Context, scheduler string) (clients []*client, err error) {
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, _ = e.cluster.Client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
	controller := true
	for _, node := range e.cluster.Nodes {
		spec := podSpec([]string{"serve", "-work", serviceWork.String()}, int(serviceDemand), scheduler)
		spec.NodeName = node.Name
		name := "service-" + node.Name
		p := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}, OwnerReferences: []metav1.OwnerReference{
				{
					APIVersion: "apps/v1",
					Kind:       "DaemonSet",
					Name:       "service",
					UID:        "d0000000-0000-0000-0000-000000000000",
					Controller: &controller,
				},
			}},
			Spec: spec,
		}
		if _, err := e.cluster.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	for i, node := range e.cluster.Nodes {
		address := ""
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, podTimeout, true, func(ctx context.Context) (bool, error) {
			p, err := e.cluster.Client.CoreV1().Pods(namespace).Get(ctx, "service-"+node.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			address = p.Status.PodIP
			return p.Status.Phase == v1.PodRunning && address != "", nil
		})
		if err != nil {
			return clients, fmt.Errorf("waiting for the service of %s: %w", node.Name, err)
		}
		phase := time.Second / serviceRate * time.Duration(i) / time.Duration(e.Nodes)
		clients = append(clients, startClient("http://"+address+":8080/", phase))
	}
	return clients, nil
}

// client sends requests at a constant rate, whether earlier ones were answered or not (an open loop). Latency counts from the time
// at which a request should have been sent.
type client struct {
	mu      sync.Mutex
	latency []time.Duration
	failed  int
	cancel  context.CancelFunc
}

func startClient(url string, phase time.Duration) *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{cancel: cancel}
	http := &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	go func() {
		next := time.Now().Add(phase)
		for ctx.Err() == nil {
			<-time.After(time.Until(next))
			intended := next
			next = next.Add(time.Second / serviceRate)
			go func() {
				response, err := http.Get(url)
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
				took := time.Since(intended)
				c.mu.Lock()
				defer c.mu.Unlock()
				c.latency = append(c.latency, took)
				if err != nil {
					c.failed++
				}
			}()
		}
		http.CloseIdleConnections()
	}()
	return c
}

func (c *client) stop() { c.cancel() }

// take returns the latencies since the last call, and the number of failed requests.
func (c *client) take() ([]time.Duration, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	latency, failed := c.latency, c.failed
	c.latency, c.failed = nil, 0
	return latency, failed
}

// createPods creates a Deployment for each workload and scales them up, one pod after the other.
func (e *experiment) createPods(ctx context.Context, s *scenario, scheduler string, epoch time.Time) error {
	deployments := e.cluster.Client.AppsV1().Deployments(namespace)
	scale := map[*workload]int{}
	for _, p := range s.order {
		w := p.workload
		scale[w]++
		if scale[w] > 1 {
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, scale[w])
			if _, err := deployments.Patch(ctx, w.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return err
			}
		} else {
			one, labels := int32(1), map[string]string{"app": w.name}
			// Pods of a Deployment are equal: each follows the mean of the recorded usage of both.
			values := make([]float64, series)
			for i := range values {
				values[i] = (w.values[0][i] + w.values[1][i]) / 2
			}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: appsv1.DeploymentSpec{
				Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: v1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{
						Labels: labels,
					},
					Spec: podSpec(w.arguments(values, &e.settings, epoch), w.request, scheduler),
				},
			}}
			if _, err := deployments.Create(ctx, d, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if err := sleep(ctx, e.Every); err != nil {
			return err
		}
	}
	return nil
}

// awaitRunning waits until a number of pods run.
func (e *experiment) awaitRunning(ctx context.Context, want int, result *Result) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := e.cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		running := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == v1.PodRunning {
				running++
			}
		}
		result.Pending = want - running
		return result.Pending == 0, nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return nil // pods that stay pending are part of the result
	}
	return err
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
	stopReference := startReference()
	if err := sleep(ctx, e.Measure); err != nil {
		return err
	}
	outside := stopReference()
	result.Pressure, result.Floor = outside.Pressure, outside.Late
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

func (n *NodeResult) addLatency(latency []time.Duration, failed int) {
	n.Requests, n.Failed = len(latency), failed
	for _, l := range latency {
		if l > late {
			n.Late++
		}
	}
	n.P50MS, n.P99MS = quantile(latency, 0.5), quantile(latency, 0.99)
}

// quantile returns a quantile in milliseconds.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Microseconds()) / 1000
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

// reference is a program with the work of the latency services, on a schedule of its own, outside of the quotas of nodes.
type reference struct {
	// Pressure is the share of the time in which it waited for a processor of the machine.
	Pressure float64
	// Late is the share of its requests that ended late.
	Late float64
}

// startReference starts the reference. The returned function stops it.
func startReference() (stop func() reference) {
	ended, result := make(chan struct{}), make(chan reference)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		const interval = time.Second / serviceRate
		_, waited := schedstat()
		begin := time.Now()
		sink, n, lateRequests := 0.0, 0, 0
		for next := begin; ; next = next.Add(interval) {
			select {
			case <-ended:
				_, w := schedstat()
				result <- reference{(w - waited) / float64(time.Since(begin)), float64(lateRequests) / float64(max(n, 1))}
				if math.IsNaN(sink) {
					panic(sink)
				}
				return
			case <-time.After(time.Until(next)):
			}
			for end := threadTime() + serviceWork; threadTime() < end; {
				for i := range 500 {
					sink += math.Sqrt(float64(i))
				}
			}
			n++
			if time.Since(next) > late {
				lateRequests++
			}
		}
	}()
	return func() reference { close(ended); return <-result }
}

func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

// deletePods deletes everything of a run. The control plane has no garbage collector.
func (e *experiment) deletePods(ctx context.Context) {
	zero, everything := int64(1), metav1.ListOptions{}
	_ = e.cluster.Client.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, everything)
	_ = e.cluster.Client.AppsV1().ReplicaSets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, everything)
	_ = e.cluster.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, everything)
	_ = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, podTimeout, true, func(ctx context.Context) (bool, error) {
		_ = e.cluster.Client.AppsV1().ReplicaSets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, everything)
		list, err := e.cluster.Client.CoreV1().Pods(namespace).List(ctx, everything)
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				_ = e.cluster.Client.CoreV1().Pods(
					namespace,
				).Delete(
					ctx,
					list.Items[i].Name,
					metav1.DeleteOptions{GracePeriodSeconds: &zero},
				)
			}
		}
		return err == nil && len(list.Items) == 0, nil
	})
}

// print prints a run for people.
func (r *Result) print(w io.Writer) {
	requests, late, throttled, periods := 0, 0, int64(0), int64(0)
	for _, n := range r.Nodes {
		requests, late, throttled, periods = requests+n.Requests, late+n.Late, throttled+n.ThrottledPeriods, periods+n.Periods
	}
	void := ""
	if r.Void {
		void = " VOID"
	}
	share := func(part, whole int64) float64 { return 100 * float64(part) / float64(max(whole, 1)) }
	fmt.Fprintf(
		w,
		"%-20s late %5.2f %% p99 %6.1f ms throttled %4.1f %% of the periods, pressure %.1f %%, floor %.2f %%, pending %d%s\n",
		r.Run,
		share(int64(late), int64(requests)),
		r.LatencyMS["p99"],
		share(throttled, periods),
		100*r.Pressure,
		100*r.Floor,
		r.Pending,
		void,
	)
	for _, n := range r.Nodes {
		fmt.Fprintf(
			w,
			"  %s demand %3.0fm used %3.0fm peak %3.0fm predicted %3.0f/%3.0fm throttled %3d/%3d late %4d/%4d p99 %5.1f ms  %s\n",
			n.Node,
			n.Demand,
			n.Used,
			n.Peak,
			n.PredictedMean,
			n.Predicted,
			n.ThrottledPeriods,
			n.Periods,
			n.Late,
			n.Requests,
			n.P99MS,
			strings.Join(n.Pods, " "),
		)
	}
}
