//go:build foreign

package whatif

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	clirecord "github.com/plimsoll-k8s/plimsoll/internal/cli/record"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	prometheusserver "github.com/plimsoll-k8s/plimsoll/test/support/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// startKubeStateMetrics builds and starts kube-state-metrics and returns its address.
func startKubeStateMetrics(t *testing.T, cp *controlplane.ControlPlane) (*program.Process, string) {
	t.Helper()
	path := program.Build(t, "kube-state-metrics", "test/kubestatemetrics", "k8s.io/kube-state-metrics/v2")
	port, telemetry := program.FreePort(t), program.FreePort(t)
	server := program.Start(t, path, "--kubeconfig="+cp.Kubeconfig, "--host=127.0.0.1", fmt.Sprintf("--port=%d", port),
		"--telemetry-host=127.0.0.1", fmt.Sprintf("--telemetry-port=%d", telemetry),
		"--resources=pods,nodes,replicasets,horizontalpodautoscalers,limitranges,resourcequotas",
		"--metric-labels-allowlist=pods=[*],nodes=[*]", "--metric-opt-in-list=kube_pod_nodeselectors")
	address := fmt.Sprintf("127.0.0.1:%d", port)
	eventually.True(t, "kube-state-metrics does not serve", server, func(ctx context.Context) (bool, error) {
		_, err := program.Get(ctx, "http://"+address+"/metrics")
		return err == nil, nil
	})
	return server, address
}

// TestRealPrometheus lets a cluster live for a minute, with a real Prometheus that scrapes a real kube-state-metrics and container
// metrics every second, records it in steps of a second, and compares the recording with what happened, pod by pod.
func TestRealPrometheus(t *testing.T) {
	c := startCluster(t)
	_, metrics := startKubeStateMetrics(t, c.ControlPlane)
	taint := v1.Taint{Key: "example.com/dedicated", Value: "a", Effect: v1.TaintEffectNoSchedule}
	for _, n := range []*v1.Node{newNode("node-a", "4", "zone-a"), newNode("node-b", "4", "zone-a", taint)} {
		testcluster.Create(t, c.client.CoreV1().Nodes(), n)
	}
	deploy(t, c, "node-a", "node-b")
	actOnRequests(t, c)
	// As with the operator of Prometheus, the targets have labels that collide with the labels of kube-state-metrics.
	server, err := prometheusserver.Start(t.Context(), []prometheusserver.Target{
		{Address: metrics, Path: "/metrics", Labels: map[string]string{
			"namespace": "monitoring", "pod": "kube-state-metrics-0", "container": "kube-state-metrics", "cluster": "a",
		}},
		{Address: c.startCadvisor(t), Path: "/metrics/cadvisor", Labels: map[string]string{"cluster": "a"}},
	}, interval)
	must.Succeed(t, err)
	defer server.Stop()
	config := record.Config{
		Server: metricprovider.Config{Address: server.Address, RateWindow: metav1.Duration{Duration: rateWindow}}, Step: time.Second,
		Window: 10 * time.Second,
	}
	awaitScrape(t, config)
	config.From = time.Now()
	deleted := live(t, c)
	config.To = time.Now()
	checkSeries(t, metrics)
	var out bytes.Buffer
	progress, err := record.Record(t.Context(), &out, config, record.Options{Log: func(line string) { t.Log(line) }})
	must.Succeed(t, err)
	t.Logf("%d bytes, missing: %v", progress.Bytes, progress.Missing)
	r, err := recording.Read(&out)
	must.Succeed(t, err)
	delay := slowestScrape(t, server.Address)
	t.Logf("values are up to %.2f s late", delay)
	checkNodes(t, r, deleted, delay)
	checkPods(t, r, c.histories(), delay)
	for i, want := range []string{
		`{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":""}],` +
			`"minReplicas":1,"scaleTargetRef":{"kind":"Deployment","name":"d"}}`,
		`{"min":{"memory":"3Mi"},"type":"Pod"}`, `{"hard":{"requests.cpu":"2500m"},"used":{"requests.cpu":"0"}}`,
	} {
		if !strings.Contains(string(r.Objects[i].JSON), want) {
			t.Errorf("%s, want %s", r.Objects[i].JSON, want)
		}
	}
	runDocumented(t, server.Address)
}

// actOnRequests creates a HorizontalPodAutoscaler, a LimitRange and a ResourceQuota.
func actOnRequests(t *testing.T, c *cluster) {
	t.Helper()
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
	scaler.Spec.ScaleTargetRef, scaler.Spec.MaxReplicas = autoscalingv2.CrossVersionObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Name: "d",
	}, 3
	scaler.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{
		Name: "cpu", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: new(int32(80))},
	}}}
	testcluster.Create(t, c.client.AutoscalingV2().HorizontalPodAutoscalers("kube-system"), scaler)
	testcluster.Create(t, c.client.CoreV1().LimitRanges("kube-system"), &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "l"},
		Spec:       v1.LimitRangeSpec{Limits: []v1.LimitRangeItem{{Type: "Pod", Min: schedtest.Amounts("memory", "3Mi")}}},
	})
	quota := &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
	quota.Spec.Hard = schedtest.Amounts("requests.cpu", "2500m")
	quota, err := c.client.CoreV1().ResourceQuotas("kube-system").Create(t.Context(), quota, metav1.CreateOptions{})
	must.Succeed(t, err)
	quota.Status = v1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: schedtest.Amounts("requests.cpu", "0")}
	_, err = c.client.CoreV1().ResourceQuotas("kube-system").UpdateStatus(t.Context(), quota, metav1.UpdateOptions{})
	must.Succeed(t, err)
}

// recorded matches the output of a command that has recorded something: in steps of a minute, not all nodes are seen.
var recorded = regexp.MustCompile(`[1-3] nodes, [1-9][0-9]* pods`)

// runDocumented runs the documented commands that record from a server.
func runDocumented(t *testing.T, address string) {
	t.Helper()
	commands, err := doccheck.CommandsOf(filepath.Join("..", "..", ".."), "plimsoll")
	must.Succeed(t, err)
	t.Chdir(t.TempDir())
	// The newest sample of a recording in steps of a minute is a minute old.
	eventually.TrueWithin(t, 2*time.Minute, time.Second, "Prometheus has no data of more than a minute ago", nil,
		func(context.Context) (bool, error) {
			return len(query(t, address, "kube_pod_info[2s] offset 62s")) > 0 &&
				len(query(t, address, "kube_node_info[2s] offset 62s")) > 0, nil
		})
	ran := map[string]bool{}
	for _, command := range commands {
		args := command.Arguments()
		i := slices.Index(args, "--prometheus")
		if len(args) == 0 || args[0] != "record" || i < 0 || slices.Contains(args, "--follow") {
			continue
		}
		args[i+1] = address
		if line := strings.Join(args, " "); ran[line] {
			continue
		} else {
			ran[line] = true
		}
		var out, errs strings.Builder
		cmd := clirecord.NewCommand()
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(append(args[1:], "--force"))
		if err := cmd.ExecuteContext(t.Context()); err != nil || !recorded.MatchString(out.String()) {
			t.Errorf("%s: %v\n%s%s", command, err, errs.String(), out.String())
		}
		if !strings.Contains(errs.String(), "100 %") || !strings.Contains(errs.String(), "missing in the recording:\n") {
			t.Errorf("%s: neither progress nor what is missing in\n%s", command, errs.String())
		}
	}
	if len(ran) < 3 {
		t.Errorf("ran %d commands, want those of the page and of the help", len(ran))
	}
}

// awaitScrape waits until Prometheus has scraped a few times.
func awaitScrape(t *testing.T, config record.Config) {
	t.Helper()
	eventually.TrueWithin(t, time.Minute, time.Second, "Prometheus has no data", nil, func(ctx context.Context) (bool, error) {
		config.From, config.To = time.Now().Add(-8*time.Second), time.Now()
		var out bytes.Buffer
		progress, err := record.Record(ctx, &out, config, record.Options{})
		if err != nil || progress.Pods < 3 {
			return false, nil //nolint:nilerr // not yet
		}
		r, err := recording.Read(&out)
		return err == nil && slices.ContainsFunc(r.Pods, func(p recording.Pod) bool { return p.CPU.Len() > 0 }), err
	})
}

// checkNodes compares the nodes of a recording with the nodes of the cluster.
func checkNodes(t *testing.T, r *recording.Recording, deleted time.Time, delay float64) {
	t.Helper()
	byName := map[string]recording.Node{}
	for _, n := range r.Nodes {
		byName[n.Object.Name] = n
	}
	for name, want := range map[string]struct {
		cpu, zone      string
		taints         int
		appeared, gone bool
	}{"node-a": {"4", "zone-a", 0, false, false}, "node-b": {"4", "zone-a", 1, false, true}, "node-c": {"8", "zone-b", 0, true, false}} {
		n := byName[name]
		if n.Object == nil {
			t.Errorf("node %s is missing", name)
			continue
		}
		allocatable := n.Object.Status.Allocatable
		gpus := allocatable["example.com/gpu"]
		if allocatable.Cpu().String() != want.cpu || allocatable.Memory().String() != "16Gi" || gpus.Value() != 2 ||
			n.Object.Labels[v1.LabelTopologyZone] != want.zone || n.Object.Labels["pool"] != "general" || len(n.Object.Spec.Taints) != want.taints {
			t.Errorf("node %s: %+v", name, n.Object)
		}
		late := float64(n.Gone) - deleted.Sub(r.About.From).Seconds()
		if (n.Appeared > 0) != want.appeared || (n.Gone != recording.Never) != want.gone || want.gone && math.Abs(late) > 4+delay {
			t.Errorf("node %s appeared at %d and was gone at %d, %.1f s after its deletion", name, n.Appeared, n.Gone, late)
		}
	}
	if len(r.Nodes) != 3 {
		t.Errorf("%d nodes, want 3", len(r.Nodes))
	}
}

// checkPods compares the pods of a recording with the histories of the pods.
func checkPods(t *testing.T, r *recording.Recording, pods map[types.UID]history, delay float64) {
	t.Helper()
	if len(r.Pods) != len(pods) {
		t.Errorf("%d pods, want %d", len(r.Pods), len(pods))
	}
	values := 0
	for _, p := range r.Pods {
		h, ok := pods[p.Object.UID]
		if !ok {
			t.Errorf("pod %s: UID %s is unknown", p.Object.Name, p.Object.UID)
			continue
		}
		checkSpec(t, p.Object, h.pod)
		checkTimes(t, r, &p, h, delay)
		values += checkUsage(t, r, &p, h, delay)
	}
	if values < 100 {
		t.Errorf("only %d values of usage were compared", values)
	}
}

// checkSpec compares the recorded spec of a pod with its object.
func checkSpec(t *testing.T, got, want *v1.Pod) {
	t.Helper()
	if got.Namespace != want.Namespace || got.Name != want.Name || got.Spec.SchedulerName != want.Spec.SchedulerName ||
		got.Spec.RestartPolicy != want.Spec.RestartPolicy || got.Spec.NodeSelector["pool"] != "general" {
		t.Errorf("pod %s: %+v", want.Name, got)
	}
	for key, value := range want.Labels {
		if got.Labels[key] != value {
			t.Errorf("pod %s: label %s is %q, want %q", want.Name, key, got.Labels[key], value)
		}
	}
	if len(want.OwnerReferences) > 0 {
		owner := want.OwnerReferences[0]
		controller := metav1.GetControllerOfNoCopy(got) // the owner of the owner may follow
		if controller == nil || controller.Kind != owner.Kind || controller.Name != owner.Name ||
			got.Labels[record.OwnerLabel] != owner.Name {
			t.Errorf("pod %s: owners %v, labels %v", want.Name, got.OwnerReferences, got.Labels)
		}
	}
	tolerates := func(list []v1.Toleration, wanted v1.Toleration) bool {
		return slices.ContainsFunc(list, func(t v1.Toleration) bool { return t.MatchToleration(&wanted) })
	}
	for _, toleration := range want.Spec.Tolerations {
		if !tolerates(got.Spec.Tolerations, toleration) {
			t.Errorf("pod %s: tolerations %v lack %v", want.Name, got.Spec.Tolerations, toleration)
		}
	}
	checkContainers(t, want.Name, got.Spec.Containers, want.Spec.Containers, want.Spec.NodeName != "")
	checkContainers(t, want.Name, got.Spec.InitContainers, want.Spec.InitContainers, false)
}

// checkContainers compares containers. Containers without requests and limits are known once they have a status.
func checkContainers(t *testing.T, pod string, got, want []v1.Container, started bool) {
	t.Helper()
	for _, w := range want {
		i := slices.IndexFunc(got, func(c v1.Container) bool { return c.Name == w.Name })
		if i < 0 {
			if started || len(w.Resources.Requests) > 0 {
				t.Errorf("pod %s: container %s is missing", pod, w.Name)
			}
			continue
		}
		for name, amount := range w.Resources.Requests {
			if g := got[i].Resources.Requests[name]; g.Cmp(amount) != 0 {
				t.Errorf("pod %s, container %s: requests %v of %s, want %v", pod, w.Name, &g, name, &amount)
			}
		}
		for name, amount := range w.Resources.Limits {
			if g := got[i].Resources.Limits[name]; g.Cmp(amount) != 0 {
				t.Errorf("pod %s, container %s: limit %v of %s, want %v", pod, w.Name, &g, name, &amount)
			}
		}
		if started && got[i].Image != w.Image {
			t.Errorf("pod %s, container %s: image %s, want %s", pod, w.Name, got[i].Image, w.Image)
		}
	}
}

// checkTimes compares the times of a pod. Times in objects are exact; a deletion is seen at the next scrape.
func checkTimes(t *testing.T, r *recording.Recording, p *recording.Pod, h history, delay float64) {
	t.Helper()
	since := func(at time.Time) int64 { return at.Unix() - r.About.From.Unix() }
	scheduled, started, node := int64(recording.Never), int64(recording.Never), h.pod.Spec.NodeName
	for _, condition := range h.pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue {
			scheduled = since(condition.LastTransitionTime.Time)
		}
	}
	if h.pod.Status.StartTime != nil {
		started = max(since(h.pod.Status.StartTime.Time), scheduled)
	}
	if p.Created != since(h.pod.CreationTimestamp.Time) || p.Scheduled != scheduled || p.Started != started || p.Node != node {
		t.Errorf("pod %s: created at %d, scheduled at %d, started at %d on %q; want %d, %d, %d on %q", p.Object.Name,
			p.Created, p.Scheduled, p.Started, p.Node, since(h.pod.CreationTimestamp.Time), scheduled, started, node)
	}
	switch {
	case h.pod.Status.Phase == v1.PodSucceeded:
		finished := since(h.pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt.Time)
		if p.Ended != finished {
			t.Errorf("pod %s ended at %d, want %d", p.Object.Name, p.Ended, finished)
		}
	case !h.deleted.IsZero():
		if deleted := since(h.deleted); float64(p.Ended) > float64(deleted)+delay || float64(p.Ended) < float64(deleted)-2-delay {
			t.Errorf("pod %s ended at %d, want %d or up to %.1f s earlier", p.Object.Name, p.Ended, deleted, 2+delay)
		}
	case p.Ended != recording.Never:
		t.Errorf("pod %s ended at %d, but runs", p.Object.Name, p.Ended)
	}
}

// checkUsage compares the usage of a pod with the usage that its kubelet served, and returns the number of compared values.
func checkUsage(t *testing.T, r *recording.Recording, p *recording.Pod, h history, delay float64) (values int) {
	t.Helper()
	if h.pod.Status.StartTime == nil {
		if p.CPU.Len() > 0 || p.Memory.Len() > 0 {
			t.Errorf("pod %s has usage without having run", p.Object.Name)
		}
		return 0
	}
	for step := range r.About.Steps() {
		at := r.About.From.Add(time.Duration(step) * time.Second)
		age := at.Sub(h.pod.Status.StartTime.Time).Seconds()
		if p.Created < 0 && step < int(rateWindow.Seconds())+2 {
			continue // Prometheus started shortly before
		}
		if cpu, ok := p.CPU.At(step); ok && age > rateWindow.Seconds()+2 {
			values++
			checkRate(t, h.pod, age, cpu, delay)
		} else if !ok && p.Ended == recording.Never && age > rateWindow.Seconds()+1+delay && 2*delay < rateWindow.Seconds() {
			t.Errorf("pod %s: no CPU at age %v", p.Object.Name, age)
		}
		// A sample is up to two scrapes old; start times have no fraction of a second.
		if memory, ok := p.Memory.At(step); ok && age >= 2 &&
			(memory < 0.999*memoryBytes(max(age-2-2*delay, 0)) || memory > 1.001*memoryBytes(age+delay)) {
			t.Errorf("pod %s: %v bytes at age %v, want about %v", p.Object.Name, memory, age, memoryBytes(age))
		}
	}
	if p.Ended != recording.Never {
		if last := max(p.CPU.End(), p.Memory.End()) - 1; int64(last) > p.Ended {
			t.Errorf("pod %s ended at %d and has usage until %d", p.Object.Name, p.Ended, last)
		}
	}
	return values
}

// checkRate compares a CPU usage in millicores with the smallest and the largest within the rate window. When the counter is
// reset, the increase until the next scrape is lost. Counters that are late by different times make the rate inexact.
func checkRate(t *testing.T, pod *v1.Pod, age, millicores, delay float64) {
	t.Helper()
	window := rateWindow.Seconds()
	low, high := 1000*cores(pod, age-window-1-delay), 1000*cores(pod, age+delay)
	if age >= resetAt-delay && age-window-1-delay <= resetAt {
		low *= max(0, 1-2*delay/window)
	}
	inexact := 0.1 + 2*(delay-interval.Seconds())/window
	if math.IsNaN(millicores) || millicores < (1-inexact)*low || millicores > (1+inexact)*high {
		t.Errorf("pod %s: %v millicores at age %v, want %v to %v", pod.Name, millicores, age, low, high)
	}
}

// checkSeries checks that kube-state-metrics knows each series that is read.
func checkSeries(t *testing.T, address string) {
	t.Helper()
	text, err := program.Get(t.Context(), "http://"+address+"/metrics")
	must.Succeed(t, err)
	for _, name := range record.SeriesNames() {
		if strings.HasPrefix(name, "kube_") && !strings.Contains(text, "# HELP "+name+" ") {
			t.Errorf("kube-state-metrics does not export %s", name)
		}
	}
}
