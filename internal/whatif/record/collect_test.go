package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// api is an API server that serves objects in pages.
type api struct {
	mu sync.Mutex
	// objects by path.
	objects map[string][]string
	// status has the status codes of paths that fail.
	status map[string]int
	// expired is the number of times that the second page of a path has expired.
	expired map[string]int
	// specs has the specs of the objects of a path.
	specs map[string]any
	// requests has the requests.
	requests []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	query := r.URL.Query()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path+" "+query.Get("limit")+" "+query.Get("continue")+query.Get("fieldSelector"))
	w.Header().Set("Content-Type", "application/json")
	path := r.URL.Path
	from := 0
	_, _ = fmt.Sscan(query.Get("continue"), &from)
	status := a.status[path]
	if from > 0 && a.expired[path] > 0 {
		a.expired[path]--
		status = http.StatusGone
	}
	names, served := a.objects[path]
	switch {
	case path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.37.1"}`)
		return
	case status == 0 && !served:
		status = http.StatusNotFound
	}
	if status != 0 {
		reason := map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden", http.StatusGone: "Expired"}[status]
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, status)
		return
	}
	to := min(from+pageSize, len(names))
	more := ""
	if to < len(names) {
		more = fmt.Sprint(to)
	}
	var items []map[string]any
	for _, name := range names[from:to] {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": a.specs[path],
			"status": map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1"}}},
		})
	}
	_ = json.NewEncoder(w).Encode(
		map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"continue": more}, "items": items},
	)
}

// many returns names in descending order.
func many(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, n-i)
	}
	return names
}

func serve(t *testing.T, a *api) *rest.Config {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

const (
	pods  = "/api/v1/pods"
	nodes = "/api/v1/nodes"
)

func TestRead(t *testing.T) {
	a := &api{
		objects: map[string][]string{
			pods: many("pod", 1201), nodes: many("node", 2), "/apis/apps/v1/replicasets": {"web"},
			"/apis/autoscaling.x-k8s.io/v1alpha1/capacitybuffers": {"buffer"}, // Only the older version is served.
		},
		status:  map[string]int{"/api/v1/services": http.StatusForbidden},
		expired: map[string]int{pods: 2},
	}
	var warnings []string
	before := time.Now().Truncate(time.Second)
	read, err := ReadCluster(t.Context(), serve(t, a), ReadOptions{Warn: func(text string) { warnings = append(warnings, text) }})
	must.Succeed(t, err)
	if n := len(read.List("pods")); n != 1201 {
		t.Errorf("%d pods, want 1201", n)
	}
	if first := string(read.List("pods")[0]); !strings.Contains(first, `"pod-0001"`) {
		t.Errorf("the first pod is %s, want pods sorted by name", first)
	}
	if n := len(read.List("capacitybuffers")); n != 1 {
		t.Errorf("%d buffers, want the one of the older version", n)
	}
	// Three pages; the second one expired twice, and each time reading restarted.
	requests := slices.DeleteFunc(slices.Clone(a.requests), func(request string) bool {
		return !strings.HasPrefix(request, "GET "+pods+" ")
	})
	want := []string{
		"GET /api/v1/pods 500 ", "GET /api/v1/pods 500 500", "GET /api/v1/pods 500 ", "GET /api/v1/pods 500 500", "GET /api/v1/pods 500 ",
		"GET /api/v1/pods 500 500", "GET /api/v1/pods 500 1000",
	}
	if !slices.Equal(requests, want) {
		t.Errorf("requests %q, want %q", requests, want)
	}
	for _, request := range a.requests {
		if !strings.HasPrefix(request, "GET ") || strings.Contains(request, "secrets") || strings.Contains(request, "configmaps") {
			t.Errorf("unexpected request %s", request)
		}
	}
	if len(read.Nodes) != 2 || len(read.Nodes[0].Status.Addresses) != 1 {
		t.Errorf("nodes %v, want 2 with their addresses, which load sources read", read.Nodes)
	}
	if strings.Contains(string(read.List("nodes")[0]), "10.0.0.1") {
		t.Error("the snapshot has addresses")
	}
	if read.About.Kubernetes != "v1.37.1" || read.About.From.Before(before) || read.About.From.After(time.Now()) {
		t.Errorf("about %+v", read.About)
	}
	missing := recording.Missing{What: "services", Why: "listing is forbidden"}
	if !slices.Contains(read.About.Missing, missing) || !slices.Contains(warnings,
		"services: listing is forbidden; missing in the snapshot") {
		t.Errorf("missing %v, warnings %q, want services", read.About.Missing, warnings)
	}
	// Kinds that are not part of Kubernetes are missing without a warning.
	if slices.ContainsFunc(warnings, func(text string) bool { return strings.Contains(text, "placements") }) {
		t.Errorf("warnings %q about optional kinds", warnings)
	}
}

// TestReadManifestWorks checks that only the ManifestWorks are read that placements refer to, each once.
// TestReadInvalidQuantities checks that an object with a quantity that cannot be decoded in a short time is left out of the snapshot
// with a warning, so that every command reads it.
func TestReadInvalidQuantities(t *testing.T) {
	const jobs = "/apis/apps/v1/deployments"
	template := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1e2147483647"}},
	}}}}}
	a := &api{
		objects: map[string][]string{pods: many("pod", 2), nodes: many("node", 2), jobs: {"web", "api"}},
		specs:   map[string]any{jobs: template},
	}
	var warnings []string
	read, err := ReadCluster(t.Context(), serve(t, a), ReadOptions{Warn: func(text string) { warnings = append(warnings, text) }})
	must.Succeed(t, err)
	if n := len(read.List("deployments")); n != 0 {
		t.Errorf("%d deployments, want none", n)
	}
	const want = "2 invalid deployments: Deployment web: spec.template.spec.containers[0].resources.requests.cpu: invalid quantity"
	if !slices.ContainsFunc(warnings, func(text string) bool { return strings.HasPrefix(text, want) }) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
}

func TestReadManifestWorks(t *testing.T) {
	const hub = "/apis/cluster.open-cluster-management.io/v1beta1/placements"
	const works = "/apis/work.open-cluster-management.io/v1/namespaces/default/manifestworks"
	ref := map[string]any{"kind": "ManifestWork", "name": "work"}
	a := &api{
		objects: map[string][]string{pods: {"a"}, nodes: {"a"}, hub: {"first", "second"}, works: {"work"}},
		specs:   map[string]any{hub: map[string]any{"workload": map[string]any{"ref": ref}}},
	}
	read, err := ReadCluster(t.Context(), serve(t, a), ReadOptions{})
	must.Succeed(t, err)
	var requests []string
	for _, request := range a.requests {
		if strings.Contains(request, "manifestworks") {
			requests = append(requests, request)
		}
	}
	want := "GET " + works + " 500 metadata.name=work"
	if n := len(read.List("manifestworks")); n != 1 || len(requests) != 1 || requests[0] != want {
		t.Errorf("%d works after requests %q, want 1 after %s", n, requests, want)
	}
}

func TestReadFails(t *testing.T) {
	for _, tc := range []struct {
		name string
		api  *api
		want string
	}{
		{"no pods", &api{objects: map[string][]string{nodes: {"a"}}, status: map[string]int{pods: http.StatusForbidden}}, "reading pods: "},
		{
			"no nodes", &api{objects: map[string][]string{pods: {"a"}}, status: map[string]int{nodes: http.StatusForbidden}},
			"reading nodes: ",
		},
		{
			"always expired",
			&api{objects: map[string][]string{pods: many("pod", 501), nodes: {"a"}}, expired: map[string]int{pods: readAttempts}},
			"reading pods: ",
		},
		{
			"broken",
			&api{
				objects: map[string][]string{pods: {"a"}, nodes: {"a"}},
				status:  map[string]int{"/apis/apps/v1/replicasets": http.StatusBadRequest},
			},
			"reading replicasets.apps: ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ReadCluster(t.Context(), serve(t, tc.api), ReadOptions{})
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestReadCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &api{objects: map[string][]string{pods: many("pod", 1001), nodes: {"a"}}}
	_, err := ReadCluster(ctx, serve(t, a), ReadOptions{Progress: func(string, int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// TestReadWhatActsOnRequests checks that autoscalers and limits of requests are read where they are served, that an API that is not served
// has none, and that one that must not be listed is missing.
func TestReadWhatActsOnRequests(t *testing.T) {
	const autoscalers, vpas = "/apis/autoscaling/v2/horizontalpodautoscalers", "/apis/autoscaling.k8s.io/v1beta2/verticalpodautoscalers"
	a := &api{objects: map[string][]string{
		pods: {"a"}, nodes: {"a"}, autoscalers: {"web"}, vpas: {"db"}, "/api/v1/limitranges": {"small"}, "/api/v1/resourcequotas": {"team"},
	}}
	read := func(areas ...string) *Cluster {
		cluster, err := ReadCluster(t.Context(), serve(t, a), ReadOptions{Areas: areas})
		must.Succeed(t, err)
		return cluster
	}
	all := read(kinds.AreaCluster, kinds.AreaRequests)
	for _, resource := range []string{"horizontalpodautoscalers", "verticalpodautoscalers", "limitranges", "resourcequotas"} {
		if len(all.List(resource)) != 1 {
			t.Errorf("%d %s, want 1", len(all.List(resource)), resource)
		}
	}
	if !all.About.HasAutoscalers || read(kinds.AreaCluster).About.HasAutoscalers {
		t.Error("a recording does not say whether autoscalers were read")
	}
	delete(a.objects, vpas)
	a.status = map[string]int{autoscalers: http.StatusForbidden}
	what := []string{}
	for _, missing := range read(kinds.AreaRequests, kinds.AreaCluster).About.Missing {
		if strings.Contains(missing.What, "autoscal") {
			what = append(what, missing.What)
		}
	}
	if want := []string{"horizontalpodautoscalers.autoscaling"}; !slices.Equal(what, want) {
		t.Errorf("missing %q, want %q", what, want)
	}
}

func TestReadAreas(t *testing.T) {
	a := &api{objects: map[string][]string{pods: {"a"}, nodes: {"a"}}}
	if _, err := ReadCluster(t.Context(), serve(t, a), ReadOptions{Areas: []string{kinds.AreaCluster}}); err != nil {
		t.Fatal(err)
	}
	for _, request := range a.requests {
		if strings.Contains(request, "placements") || strings.Contains(request, "podtemplates") {
			t.Errorf("unexpected request %s", request)
		}
	}
}
