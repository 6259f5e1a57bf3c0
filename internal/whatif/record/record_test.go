package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var never = math.Inf(1)

// wave is a usage that changes over time: between 0.5 and 1.5 cores, and 1 GiB more each hour.
func wave(minute float64) (cores, bytes float64) {
	return 1 + 0.5*math.Sin(minute/10), (1 + minute/60) * (1 << 30)
}

// scenario has a pod of each kind.
func scenario() ([]fakePod, []fakeNode) {
	gap := func(minute float64) (cores, bytes float64) {
		if minute >= 40 && minute < 50 {
			return never, never
		}
		return wave(minute)
	}
	pod := func(name, node, owner string, created, scheduled, finished, deleted float64) fakePod {
		return fakePod{
			namespace: "default", name: name, uid: "uid-" + name, node: node, owner: owner, created: created, scheduled: scheduled,
			finished: finished, deleted: deleted, cpu: 0.5, usage: wave,
		}
	}
	pods := []fakePod{
		pod("old", "node-a", "ReplicaSet/web-1", -600, -599, never, never),
		pod("before", "node-a", "Job/early", -600, -599, -300, never),
		pod("new", "node-a", "ReplicaSet/web-1", 35, 36, never, never),
		pod("deleted", "node-b", "ReplicaSet/web-2", 10, 11, never, 70.5),
		pod("job", "node-b", "Job/batch", 20, 21, 65.25, never),
		pod("pending", "", "", 50, never, never, never),
		pod("gap", "node-a", "", 5, 6, never, never),
		pod("db-0", "node-a", "StatefulSet/db", -60, -60, never, 61.5),
		pod("db-0", "node-b", "StatefulSet/db", 62, 62.5, never, never),
		pod("agent", "node-b", "DaemonSet/agent", -60, -60, never, never),
	}
	pods[6].usage = gap
	pods[8].uid = "uid-db-0-second"
	nodes := []fakeNode{
		{name: "node-a", created: -1000, gone: never, cores: 8},
		{name: "node-b", created: -1000, gone: 100.5, cores: 4, taint: "example.com/pool"},
		{name: "node-c", created: 45, gone: never, cores: 16},
	}
	return pods, nodes
}

// record records with the fake server and returns the recording that is read from the file.
func record(t testing.TB, config Config, options Options) (*recording.Recording, []string) {
	t.Helper()
	var lines []string
	options.Log = func(line string) { lines = append(lines, line) }
	options.retryDelay = 1
	var out bytes.Buffer
	progress, err := Record(t.Context(), &out, config, options)
	must.Succeed(t, err)
	if progress.Bytes != int64(out.Len()) {
		t.Errorf("%d bytes reported, %d written", progress.Bytes, out.Len())
	}
	r, err := recording.Read(&out)
	must.Succeed(t, err)
	return r, lines
}

// podsOf returns the pods of a recording by UID.
func podsOf(r *recording.Recording) map[string]*recording.Pod {
	out := map[string]*recording.Pod{}
	for i := range r.Pods {
		out[string(r.Pods[i].Object.UID)] = &r.Pods[i]
	}
	return out
}

// expected returns the expected times and node of a pod in a recording of a number of minutes. A deleted pod ends at the last scrape before
// its deletion.
func expected(p fakePod, minutes float64) (created, scheduled, ended int64, node string) {
	at := func(minute float64) int64 {
		if minute > minutes {
			return recording.Never
		}
		return int64(math.Floor(60 * minute))
	}
	ended = at(p.finished)
	if p.deleted <= minutes {
		ended = min(ended, at(math.Ceil(p.deleted)-1))
	}
	if node = p.node; at(p.scheduled) == recording.Never {
		node = ""
	}
	return at(p.created), at(p.scheduled), ended, node
}

// checkScenario compares a recording with the scenario, pod by pod and value by value.
func checkScenario(t *testing.T, r *recording.Recording, pods []fakePod, minutes int) {
	t.Helper()
	found := podsOf(r)
	if len(r.Pods) != len(pods)-1 || found["uid-before"] != nil {
		t.Errorf("%d pods, want %d: all but the one that ended before", len(r.Pods), len(pods)-1)
	}
	for _, p := range pods {
		if p.name == "before" {
			continue
		}
		got := found[p.uid]
		if got == nil {
			t.Errorf("pod %s is missing", p.uid)
			continue
		}
		created, scheduled, ended, node := expected(p, float64(minutes))
		if got.Created != created || got.Scheduled != scheduled || got.Started != scheduled || got.Ended != ended || got.Node != node {
			t.Errorf("pod %s: %d, %d, %d, %d on %q; want %d, %d, %d, %d on %q", p.uid, got.Created, got.Scheduled, got.Started, got.Ended,
				got.Node, created, scheduled, scheduled, ended, node)
		}
		if cpu := got.Object.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]; cpu.MilliValue() != 500 {
			t.Errorf("pod %s requests %v", p.uid, &cpu)
		}
		for step := range minutes + 1 {
			at := int64(60 * step)
			cores, bytes := math.NaN(), math.NaN()
			if node != "" && at >= scheduled && at <= ended {
				if cores, bytes = p.usage(float64(step)); math.IsInf(cores, 1) {
					cores, bytes = math.NaN(), math.NaN()
				}
			}
			checkValue(t, p.uid+" CPU", &got.CPU, step, 1000*cores, 1)
			checkValue(t, p.uid+" memory", &got.Memory, step, bytes, 1<<20)
		}
	}
}

// checkValue compares a value with the expected value, NaN for none. It is rounded to a code, to a whole unit and to a code again.
func checkValue(t *testing.T, what string, s *recording.Series, step int, want, unit float64) {
	t.Helper()
	got, ok := s.At(step)
	if ok == math.IsNaN(want) || ok && math.Abs(got-want) > unit/2+0.0014*want {
		t.Errorf("%s at step %d: %g, %v, want %g", what, step, got, ok, want)
	}
}

func TestRecord(t *testing.T) {
	pods, nodes := scenario()
	server := startFake(t, pods, nodes)
	r, lines := record(t, server.config(120), Options{})
	checkScenario(t, r, pods, 120)
	if len(lines) != 0 {
		t.Errorf("logged %q", lines)
	}
	for i, want := range []struct {
		name           string
		appeared, gone int64
		cores          int64
		taints         int
	}{{"node-a", -60000, recording.Never, 8, 0}, {"node-b", -60000, 6000, 4, 1}, {"node-c", 2700, recording.Never, 16, 0}} {
		n := r.Nodes[i]
		cores, labels := n.Object.Status.Allocatable.Cpu().Value(), n.Object.Labels
		if n.Object.Name != want.name || n.Appeared != want.appeared || n.Gone != want.gone || cores != want.cores ||
			len(n.Object.Spec.Taints) != want.taints || labels[v1.LabelTopologyZone] != "zone-a" || labels[v1.LabelHostname] != want.name {
			t.Errorf("node %+v, want %+v", n, want)
		}
	}
	byUID := podsOf(r)
	agent, old := byUID["uid-agent"].Object, byUID["uid-old"].Object
	if agent.Spec.Tolerations[0].Key != "example.com/pool" || agent.Spec.Affinity == nil {
		t.Errorf("the daemon pod tolerates %v, affinity %v", agent.Spec.Tolerations, agent.Spec.Affinity)
	}
	if owner := old.OwnerReferences[0]; owner.Kind != "ReplicaSet" || owner.Name != "web-1" || owner.APIVersion != "apps/v1" {
		t.Errorf("owner %+v", owner)
	}
	if old.Labels["app.kubernetes.io/name"] != "web" || old.Labels[OwnerLabel] != "web-1" || old.Labels["team_name"] != "a" {
		t.Errorf("labels %v", old.Labels)
	}
	for i, want := range []string{
		`"spec":{"maxReplicas":7,"metrics":[{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":""}],` +
			`"minReplicas":2,"scaleTargetRef":{"kind":"StatefulSet","name":"db"}}`,
		`"spec":{"limits":[{"maxLimitRequestRatio":{"memory":"1500m"},"type":"Container"}]}`,
		`"status":{"hard":{"requests.cpu":"2500m"},"used":{"requests.memory":"1Gi"}}`,
		OwnerLabel, OwnerLabel, OwnerLabel,
	} {
		if len(r.Objects) != 6 || !strings.Contains(string(r.Objects[i].JSON), want) {
			t.Errorf("%s, want %s", r.Objects[i].JSON, want)
		}
	}
	if !r.About.HasAutoscalers {
		t.Error("the recording does not say that it has autoscalers")
	}
	checkMissing(t, r, "values of usage: 20 of", "keys of labels: ", "series kube_replicaset_owner: no data",
		"series kube_pod_tolerations: no data: a pod tolerates")
}

// TestUsageQueries checks that pods that were not scraped a rate window ago have no CPU usage: their rate would be too low.
func TestUsageQueries(t *testing.T) {
	config := (&fakeServer{}).emptyConfig()
	config.UsageLabels, config.Series = map[string]string{"pod": "p"}, map[string]string{containerMemory: ""}
	must.Succeed(t, config.Validate())
	cpu, memory := config.usageQueries()
	const young = ") and group by (namespace, p) (container_cpu_usage_seconds_total{p!=\"\"} offset 2m)"
	if !strings.HasSuffix(cpu, young) || strings.Count(cpu, "[2m]") != 2 || memory != "" {
		t.Errorf("%s, %q", cpu, memory)
	}
}

// TestNodeChanges gives all nodes 32 cores after an hour: a node has its last recorded amounts, and is not recorded twice.
func TestNodeChanges(t *testing.T) {
	pods, nodes := scenario()
	server := startFake(t, pods, nodes)
	server.intercept = func(w http.ResponseWriter, query string, _, to, _ float64) bool {
		if !strings.Contains(query, nodeAllocatable) || to <= unixOf(60) {
			return false
		}
		out := newResult(w, false)
		for _, n := range nodes {
			out.add(map[string]string{"node": n.name, "resource": "cpu"}, [2]float64{to, 32})
		}
		out.end()
		return true
	}
	r, _ := record(t, server.config(120), Options{})
	if len(r.Nodes) != len(nodes) {
		t.Errorf("%d nodes, want %d", len(r.Nodes), len(nodes))
	}
	for _, n := range r.Nodes {
		if cores := n.Object.Status.Allocatable.Cpu().Value(); cores != 32 {
			t.Errorf("node %s has %d cores, want 32", n.Object.Name, cores)
		}
	}
	if n := r.Nodes[0]; n.Appeared != -60000 || n.Gone != recording.Never {
		t.Errorf("node %s appeared at %d, gone at %d", n.Object.Name, n.Appeared, n.Gone)
	}
}

// checkMissing checks that the recording says that parts are missing.
func checkMissing(t *testing.T, r *recording.Recording, want ...string) {
	t.Helper()
	var all strings.Builder
	for _, m := range r.About.Missing {
		fmt.Fprintf(&all, "%s: %s\n", m.What, m.Why)
	}
	for _, text := range want {
		if !strings.Contains(all.String(), text) {
			t.Errorf("missing lacks %q:\n%s", text, all.String())
		}
	}
}

// TestRecordRedacted checks that no name is in the file and that names agree with each other.
func TestRecordRedacted(t *testing.T) {
	pods, nodes := scenario()
	server := startFake(t, pods, nodes)
	r, _ := record(t, server.config(120), Options{Redact: true})
	var file bytes.Buffer
	must.Succeed(t, r.Write(&file))
	text := fmt.Sprintf("%+v %s", r.Nodes, r.Objects)
	names := map[string]bool{}
	for _, n := range r.Nodes {
		names[n.Object.Name] = true
	}
	for _, p := range r.Pods {
		text += fmt.Sprintf("%+v", p.Object)
		if p.Node != "" && !names[p.Node] {
			t.Errorf("pod on unknown node %q", p.Node)
		}
	}
	for _, secret := range []string{"node-a", "uid-old", "web-1", "db-0", "registry.example", "team_name", "example.com", "zone-a", "acme", server.URL} {
		whole := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(secret) + `($|[^a-z0-9-])`)
		if whole.MatchString(text + fmt.Sprint(r.About)) {
			t.Errorf("the recording contains %s", secret)
		}
	}
	if !r.About.Redacted {
		t.Error("the description does not say that names are pseudonyms")
	}
}

// TestRenamed checks that renamed series and labels are found: exported_ labels automatically, other names as configured.
func TestRenamed(t *testing.T) {
	pods, nodes := scenario()
	server := startFake(t, pods, nodes)
	server.relabel = func(labels map[string]string) map[string]string {
		out := map[string]string{"namespace": "monitoring", "pod": "kube-state-metrics-0"}
		for key, value := range labels {
			if key == "namespace" || key == "pod" {
				key = "exported_" + key
			}
			out[key] = value
		}
		return out
	}
	r, lines := record(t, server.config(120), Options{})
	checkScenario(t, r, pods, 120)
	if len(lines) != 2 || !strings.Contains(lines[0], "using it in place of namespace") {
		t.Errorf("logged %q", lines)
	}
	server.relabel = func(labels map[string]string) map[string]string {
		out := map[string]string{}
		for key, value := range labels {
			out["k8s_"+key] = value
		}
		return out
	}
	config := server.config(120)
	config.Labels = map[string]string{}
	for _, name := range []string{
		"namespace", "pod", "uid", "node", "container", "resource", "created_by_kind", "created_by_name", "owner_kind", "owner_name", "key",
		"effect", "image_spec",
	} {
		config.Labels[name] = "k8s_" + name
	}
	config.Series = map[string]string{podLabels: "", nodeLabels: ""}
	r, _ = record(t, config, Options{})
	checkScenario(t, r, pods, 120)
	checkMissing(t, r, "labels of pods: no data of kube_pod_labels")
}

// TestSeriesMissing omits each series that is not required: the recording names what it lacks, and only that differs. Times that are not
// exported are at most a scrape late, and 0 if they were before the recording.
func TestSeriesMissing(t *testing.T) {
	pods, nodes := scenario()
	complete, _ := record(t, startFake(t, pods, nodes).config(120), Options{})
	setTime := func(got *int64, want int64) {
		if *got == want || *got >= max(want, 0) && *got <= max(want, 0)+60 {
			*got = want
		}
	}
	type lost struct {
		missing string
		restore func(got, want *recording.Pod)
	}
	none := func(_, _ *recording.Pod) {}
	created := func(got, want *recording.Pod) { got.Created = want.Created }
	for name, l := range map[string]lost{
		podCreated: {"series kube_pod_created: no data", func(got, want *recording.Pod) {
			if want.Scheduled < 0 && got.Created <= 0 {
				created(got, want)
			}
			setTime(&got.Created, want.Created)
		}},
		podScheduledTime: {"series kube_pod_status_scheduled_time: no data", none}, // equal to the start
		podStartTime:     {"series kube_pod_start_time: no data", none},
		podCompletion:    {"", func(got, want *recording.Pod) { setTime(&got.Ended, want.Ended) }},
		podPhase:         {"when pods succeeded or failed: no data", func(got, want *recording.Pod) { got.Ended = want.Ended }},
		podLabels:        {"labels of pods: no data", func(got, want *recording.Pod) { got.Object.Labels = want.Object.Labels }},
		containerInfo: {"series kube_pod_container_info: no data", func(got, _ *recording.Pod) {
			got.Object.Spec.Containers[0].Image = "registry.example/main:1"
		}},
		containerRequest: {"series kube_pod_container_resource_requests: no data", func(got, want *recording.Pod) {
			got.Object.Spec.Containers = want.Object.Spec.Containers
		}},
		nodeCreated:     {"series kube_node_created: no data", none},
		nodeLabels:      {"labels of nodes: no data", none},
		nodeTaint:       {"", func(got, want *recording.Pod) { got.Object.Spec.Tolerations = want.Object.Spec.Tolerations }},
		nodeAllocatable: {"series kube_node_status_allocatable: no data", none},
		scalerInfo:      {"series kube_horizontalpodautoscaler_info: no data", none},
		scalerTarget:    {"series kube_horizontalpodautoscaler_spec_target_metric: no data", none},
		limitRange:      {"series kube_limitrange: no data", none},
		resourceQuota:   {"series kube_resourcequota: no data", none},
		containerCPU:    {"CPU usage: no data", func(got, want *recording.Pod) { got.CPU = want.CPU }},
		containerMemory: {"memory usage: no data", func(got, want *recording.Pod) { got.Memory = want.Memory }},
	} {
		t.Run(name, func(t *testing.T) {
			server := startFake(t, pods, nodes)
			server.omitted = []string{name}
			r, _ := record(t, server.config(120), Options{})
			got := podsOf(r)
			for uid, want := range podsOf(complete) {
				if got[uid] == nil {
					t.Errorf("pod %s is missing", uid)
					continue
				}
				if l.restore(got[uid], want); name == podCreated {
					got[uid].Object.CreationTimestamp = want.Object.CreationTimestamp
				}
				if diff := cmp.Diff(want, got[uid], cmp.AllowUnexported(recording.Series{})); diff != "" {
					t.Errorf("pod %s: %s", uid, diff)
				}
			}
			for i, want := range complete.Nodes {
				n := r.Nodes[i]
				if name == nodeCreated {
					setTime(&n.Appeared, want.Appeared)
				}
				if n.Object.Name != want.Object.Name || n.Appeared != want.Appeared || n.Gone != want.Gone {
					t.Errorf("node %+v, want %+v", n, want)
				}
			}
			checkMissing(t, r, l.missing)
		})
	}
	server := startFake(t, pods, nodes)
	server.omitted = []string{nodeInfo}
	r, _ := record(t, server.config(120), Options{})
	checkMissing(t, r, "nodes from 2026-03-01T00:00:00Z to 2026-03-01T02:00:00Z: no data of kube_node_info: none are recorded")
}

// TestTimesMissing omits all times of pods, as the lists of series of some installations do: a pod is created and started when it is seen
// first, and no later window changes this.
func TestTimesMissing(t *testing.T) {
	pods, nodes := scenario()
	server := startFake(t, pods, nodes)
	server.omitted = []string{podCreated, podScheduledTime, podStartTime}
	r, _ := record(t, server.config(120), Options{})
	for uid, want := range map[string][3]int64{
		"uid-old": {0, 0, 0}, "uid-new": {35 * 60, 36 * 60, 36 * 60}, "uid-agent": {0, 0, 0},
		"uid-db-0-second": {62 * 60, 63 * 60, 63 * 60}, "uid-pending": {50 * 60, recording.Never, recording.Never},
	} {
		if p := podsOf(r)[uid]; [3]int64{p.Created, p.Scheduled, p.Started} != want {
			t.Errorf("pod %s: %d, %d, %d, want %d", uid, p.Created, p.Scheduled, p.Started, want)
		}
	}
}

// TestOutage checks that an outage of kube-state-metrics, within a window or over whole windows, ends no pod.
func TestOutage(t *testing.T) {
	pods, nodes := scenario()
	server := startFake(t, pods, nodes)
	server.down = func(minute float64) bool { return minute >= 15 && minute < 25 || minute > 29 && minute < 95 }
	r, lines := record(t, server.config(180), Options{})
	// Pods that were created and deleted during the outage are unknown.
	got := podsOf(r)
	for _, uid := range []string{"uid-old", "uid-new", "uid-gap", "uid-agent", "uid-db-0-second"} {
		if p := got[uid]; p == nil || p.Ended != recording.Never || p.Node == "" {
			t.Errorf("pod %s: %+v", uid, p)
		}
	}
	// The deleted pod was seen last at minute 29, before the outage.
	if p := got["uid-deleted"]; p == nil || p.Ended != 29*60 {
		t.Errorf("deleted pod: %+v", p)
	}
	checkMissing(t, r, "pods from 2026-03-01T00:30:00Z to 2026-03-01T01:30:00Z: no data of kube_pod_info: they are taken as unchanged")
	if p := got["uid-pending"]; p == nil || p.Created != 50*60 {
		t.Errorf("pod created during the outage: %+v", p)
	}
	if len(lines) == 0 {
		t.Error("no line about the outage")
	}
}

// TestInterrupted checks that an interrupted recording returns an error, and that a new recording is complete.
func TestInterrupted(t *testing.T) {
	pods, nodes := scenario()
	server := startFake(t, pods, nodes)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	if _, err := Record(ctx, &out, server.config(120), Options{Progress: func(Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	r, _ := record(t, server.config(120), Options{})
	checkScenario(t, r, pods, 120)
}

// TestInvalidValues checks that invalid amounts and future times are counted and do not affect other values.
func TestInvalidValues(t *testing.T) {
	pods, nodes := scenario()
	pods[0].usage = func(minute float64) (cores, bytes float64) {
		if minute == 30 {
			return -1, math.NaN()
		}
		return wave(minute)
	}
	pods[2].scheduled = 1e6 // a clock step
	server := startFake(t, pods, nodes)
	r, _ := record(t, server.config(120), Options{})
	if _, ok := podsOf(r)["uid-old"].CPU.At(30); ok {
		t.Error("a negative value is recorded")
	}
	checkMissing(t, r, "values of usage that are no amounts: 2 were")
}

func TestConfigErrors(t *testing.T) {
	for _, tc := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Server.Address = "x" }, `address "x": must be a URL like`},
		{func(c *Config) { c.Step = time.Millisecond }, "step: invalid value 1ms: must be whole seconds, at least 1s"},
		{func(c *Config) { c.Window = time.Second }, "window: invalid value 1s: must be at least the step, 1m0s"},
		{func(c *Config) { c.To = c.From }, "to: invalid value 2026-03-01T00:00:00Z: must be after from"},
		{ // 2^20 seconds are 12 days, 3 h 16 min 16 s
			func(c *Config) { c.Step, c.To = time.Second, c.From.Add(14*24*time.Hour) },
			"step: invalid value 1s: must be more than 1.153564453s, so that there are at most 1048576 steps from 2026-03-01T00:00:00Z to",
		},
		{func(c *Config) { c.Series = map[string]string{"kube_pods": "x"} }, `series: unknown name "kube_pods": must be one of kube_pod_info`},
		{func(c *Config) { c.Series = map[string]string{podInfo: ""} }, "series: kube_pod_info: required"},
		{func(c *Config) { c.Series = map[string]string{podInfo: "a b"} }, `series: invalid name "a b" for kube_pod_info`},
		{func(c *Config) { c.Labels = map[string]string{"nodes": "a"} }, `label: unknown name "nodes": must be one of `},
		{func(c *Config) { c.UsageLabels = map[string]string{"nmespace": "a"} }, "did you mean namespace?"},
		{func(c *Config) { c.Labels = map[string]string{"pod": "a-b"} }, "label: invalid value pod=a-b: must be two names of labels"},
		{func(c *Config) { c.Timeout = 1 }, "timeout: invalid value 1ns: must be at least 1s"},
	} {
		config := (&fakeServer{}).emptyConfig()
		tc.change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}
