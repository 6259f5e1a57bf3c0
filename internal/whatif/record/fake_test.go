package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

// Series that the fake server has, other than the ones with a constant in this package.
const (
	podCreated       = "kube_pod_created"
	podScheduledTime = "kube_pod_status_scheduled_time"
	podCompletion    = "kube_pod_completion_time"
	containerRequest = "kube_pod_container_resource_requests"
	containerLimit   = "kube_pod_container_resource_limits"
	nodeCreated      = "kube_node_created"
	nodeAllocatable  = "kube_node_status_allocatable"
	nodeTaint        = "kube_node_spec_taint"
	scalerTarget     = "kube_horizontalpodautoscaler_spec_target_metric"
	limitRange       = "kube_limitrange"
	resourceQuota    = "kube_resourcequota"
)

// start is the start of all recordings of the fake server.
var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// fakePod is a pod of the fake server. Times are in minutes since start.
type fakePod struct {
	namespace, name, uid, node, owner     string
	created, scheduled, finished, deleted float64 // deleted and finished are +Inf if it never happens
	cpu                                   float64 // requested cores
	usage                                 func(minute float64) (cores, bytes float64)
	extra                                 map[string]string
}

// fakeNode is a node of the fake server.
type fakeNode struct {
	name          string
	created, gone float64
	cores         float64
	taint         string
}

// fakeServer answers the queries of this package about a cluster as Prometheus does.
type fakeServer struct {
	*httptest.Server
	pods  []fakePod
	nodes []fakeNode
	// omitted are series without data, twice are series that two targets export.
	omitted []string
	// down reports whether kube-state-metrics was down at a minute.
	down func(minute float64) bool
	// intercept, if set, may answer a request itself.
	intercept func(w http.ResponseWriter, query string, from, to, step float64) bool
	// relabel, if set, changes the labels of kube-state-metrics.
	relabel func(map[string]string) map[string]string

	mu      sync.Mutex
	queries int
}

// unixOf returns the time of a minute.
func unixOf(minute float64) float64 { return float64(start.Unix()) + 60*minute }

func startFake(t testing.TB, pods []fakePod, nodes []fakeNode) *fakeServer {
	t.Helper()
	f := &fakeServer{pods: pods, nodes: nodes}
	f.listen()
	t.Cleanup(f.Close)
	return f
}

// listen starts the server.
func (f *fakeServer) listen() { f.Server = httptest.NewServer(f) }

// config returns the configuration of a recording of a number of minutes.
func (f *fakeServer) config(minutes int) Config {
	return Config{
		Server: metricprovider.Config{Address: f.URL}, From: start, To: start.Add(time.Duration(minutes) * time.Minute),
		Window: 30 * time.Minute,
	}
}

var (
	metricName = regexp.MustCompile(`[a-z_]*(kube|container)_[a-z_]+`)
	rangeOf    = regexp.MustCompile(`\[(\d+)s`)
)

// ServeHTTP implements http.Handler.
func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.queries++
	f.mu.Unlock()
	query := r.FormValue("query")
	number := func(name string) float64 {
		value, _ := strconv.ParseFloat(r.FormValue(name), 64)
		return value
	}
	to, step := number("time"), 0.0
	from := to
	if strings.HasSuffix(r.URL.Path, "query_range") {
		from, to, step = number("start"), number("end"), number("step")
	} else if match := rangeOf.FindStringSubmatch(query); match != nil {
		seconds, _ := strconv.ParseFloat(match[1], 64)
		from -= seconds
	}
	if f.intercept != nil && f.intercept(w, query, from, to, step) {
		return
	}
	name := metricName.FindString(query)
	out := newResult(w, step > 0)
	switch {
	case slices.Contains(f.omitted, name):
	case step > 0:
		f.usage(out, name, from, to, step)
	case strings.HasPrefix(name, "kube_node"):
		f.nodeSeries(out, name, query, from, to)
	case len(objectSeries[name]) > 0:
		for labels, value := range objectSeries[name] {
			metric := map[string]string{"namespace": "default"}
			for label := range strings.SplitSeq(labels, " ") {
				key, value, _ := strings.Cut(label, "=")
				metric[key] = value
			}
			out.add(metric, [2]float64{to, value})
		}
	default:
		f.podSeries(out, name, query, from, to)
	}
	out.end()
}

// objectSeries has the labels and the values of what acts on requests in namespace default, by series of kube-state-metrics 2.18.
var objectSeries = map[string]map[string]float64{
	scalerInfo: {"horizontalpodautoscaler=acme scaletargetref_kind=StatefulSet scaletargetref_name=db": 1},
	scalerTarget: {
		"horizontalpodautoscaler=acme metric_name=cpu metric_target_type=utilization": 80,
		"horizontalpodautoscaler=acme metric_name=memory metric_target_type=average":  1 << 30,
	},
	"kube_horizontalpodautoscaler_spec_min_replicas": {"horizontalpodautoscaler=acme": 2},
	"kube_horizontalpodautoscaler_spec_max_replicas": {"horizontalpodautoscaler=acme": 7},
	limitRange: {
		"limitrange=acme resource=memory type=Container constraint=maxLimitRequestRatio": 1.5,
		"limitrange=acme resource=cpu type=Pod constraint=default":                       1,
	},
	resourceQuota: {
		"resourcequota=acme resource=requests.cpu type=hard":    2.5,
		"resourcequota=acme resource=requests.memory type=used": 1 << 30,
	},
}

// result writes a result.
type result struct {
	w     http.ResponseWriter
	many  bool
	count int
	buf   []byte
}

func newResult(w http.ResponseWriter, many bool) *result {
	kind := "vector"
	if many {
		kind = "matrix"
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[`, kind)
	return &result{w: w, many: many}
}

// add adds a series.
func (r *result) add(metric map[string]string, values ...[2]float64) {
	if len(values) == 0 {
		return
	}
	out := r.buf[:0]
	if r.count++; r.count > 1 {
		out = append(out, ',')
	}
	labels, _ := json.Marshal(metric)
	out = append(append(append(out, `{"metric":`...), labels...), `,"value`...)
	if r.many {
		out = append(out, `s":[`...)
	} else {
		out = append(out, `":`...)
	}
	for i, value := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(strconv.AppendFloat(append(out, '['), value[0], 'f', -1, 64), `,"`...)
		out = append(strconv.AppendFloat(out, value[1], 'f', -1, 64), `"]`...)
	}
	if r.many {
		out = append(out, ']')
	}
	r.buf = append(out, '}')
	_, _ = r.w.Write(r.buf)
}

func (r *result) end() { fmt.Fprint(r.w, `]}}`) }

// scraped returns the last time in minutes at which something that exists from a time until another was scraped, once a minute, in
// an interval.
func (f *fakeServer) scraped(created, gone, from, to float64) (float64, bool) {
	minute := func(at float64) float64 { return (at - float64(start.Unix())) / 60 }
	for at := math.Floor(minute(to)); at >= minute(from); at-- {
		if at >= created && at < gone && (f.down == nil || !f.down(at)) {
			return at, true
		}
	}
	return 0, false
}

// firstScraped returns the first time in minutes at which something that exists from a time on was scraped after another time.
func (f *fakeServer) firstScraped(created, from float64) float64 {
	at := math.Ceil(max(created, (from-float64(start.Unix()))/60))
	for f.down != nil && f.down(at) {
		at++
	}
	return at
}

func (f *fakeServer) podSeries(out *result, name, query string, from, to float64) {
	for i := range f.pods {
		p := &f.pods[i]
		seen, ok := f.scraped(p.created, p.deleted, from, to)
		if !ok {
			continue
		}
		labels := map[string]string{"namespace": p.namespace, "pod": p.name, "uid": p.uid}
		add := func(value float64, more ...string) {
			metric := maps.Clone(labels)
			maps.Copy(metric, p.extra)
			for i := 0; i < len(more); i += 2 {
				metric[more[i]] = more[i+1]
			}
			if f.relabel != nil {
				metric = f.relabel(metric)
			}
			out.add(metric, [2]float64{to, value})
		}
		node := p.node
		if seen < p.scheduled {
			node = ""
		}
		switch name {
		case podInfo:
			if strings.HasPrefix(query, "min by") {
				add(unixOf(f.firstScraped(p.created, from)), "node", "")
				if node != "" {
					add(unixOf(f.firstScraped(p.scheduled, from)), "node", node)
				}
				continue
			}
			add(unixOf(seen), "node", node, "created_by_kind", cmp.Or(kindOf(p.owner), "<none>"), "created_by_name",
				cmp.Or(nameOf(p.owner), "<none>"), "host_network", "false", "priority_class", "")
		case podCreated:
			add(unixOf(p.created))
		case podScheduledTime, podStartTime:
			if node != "" {
				add(unixOf(p.scheduled))
			}
		case podCompletion:
			if seen >= p.finished {
				add(unixOf(p.finished))
			}
		case podPhase:
			if seen >= p.finished {
				add(max(from, unixOf(math.Ceil(p.finished))))
			}
		case podLabels:
			add(1, "label_app_kubernetes_io_name", "web", "label_team_name", "a")
		case containerInfo:
			add(1, "container", "main", "image_spec", "registry.example/main:1")
		case containerRequest:
			add(p.cpu, "container", "main", "resource", "cpu")
			add(1<<30, "container", "main", "resource", "memory")
		case containerLimit:
			if p.cpu == 0.25 { // the large cluster
				add(1, "container", "main", "resource", "cpu")
				add(2<<30, "container", "main", "resource", "memory")
			}
		}
	}
}

func kindOf(owner string) string { kind, _, _ := strings.Cut(owner, "/"); return kind }
func nameOf(owner string) string { _, name, _ := strings.Cut(owner, "/"); return name }

func (f *fakeServer) nodeSeries(out *result, name, query string, from, to float64) {
	for _, n := range f.nodes {
		seen, ok := f.scraped(n.created, n.gone, from, to)
		if !ok {
			continue
		}
		add := func(value float64, more ...string) {
			metric := map[string]string{"node": n.name}
			for i := 0; i < len(more); i += 2 {
				metric[more[i]] = more[i+1]
			}
			if f.relabel != nil {
				metric = f.relabel(metric)
			}
			out.add(metric, [2]float64{to, value})
		}
		switch name {
		case nodeInfo:
			if strings.HasPrefix(query, "min by") {
				seen = f.firstScraped(n.created, from)
			}
			add(unixOf(seen))
		case nodeCreated:
			add(unixOf(n.created))
		case nodeAllocatable:
			add(n.cores, "resource", "cpu")
			add(n.cores*4*(1<<30), "resource", "memory")
			add(110, "resource", "pods")
		case nodeTaint:
			if n.taint != "" {
				add(unixOf(seen), "key", n.taint, "effect", string(v1.TaintEffectNoSchedule), "value", "")
			}
			add(unixOf(seen), "key", v1.TaintNodeNotReady, "effect", string(v1.TaintEffectNoSchedule), "value", "")
		case nodeLabels:
			add(1, "label_topology_kubernetes_io_zone", "zone-a")
		}
	}
}

// usage writes the usage of pods.
func (f *fakeServer) usage(out *result, name string, from, to, step float64) {
	for i := range f.pods {
		p := &f.pods[i]
		var values [][2]float64
		for at := from; at <= to; at += step {
			minute := (at - float64(start.Unix())) / 60
			if p.usage == nil || minute < p.scheduled || minute > min(p.finished, p.deleted) {
				continue
			}
			cores, bytes := p.usage(minute)
			value := cores
			if name == containerMemory {
				value = bytes
			}
			if !math.IsInf(value, 1) { // a gap
				values = append(values, [2]float64{at, value})
			}
		}
		out.add(map[string]string{"namespace": p.namespace, "pod": p.name}, values...)
	}
}

// emptyConfig returns a valid configuration without a server.
func (f *fakeServer) emptyConfig() Config {
	return Config{Server: metricprovider.Config{Address: "http://localhost"}, From: start, To: start.Add(time.Hour)}
}
