package controlplane

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPodMetricsOfNamespace checks that the usage of the pods of one namespace is served, as kubectl top pods asks for it.
func TestPodMetricsOfNamespace(t *testing.T) {
	pods := func(context.Context) []Usage {
		return []Usage{{Namespace: "shop", Name: "web"}, {Namespace: "other", Name: "x"}}
	}
	for path, want := range map[string]int{"/pods": 2, "/namespaces/shop/pods": 1, "/namespaces/none/pods": 0} {
		w := httptest.NewRecorder()
		metricsAPI(nil, pods).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", metricsGroup+path, nil))
		got := w.Body.String()
		if w.Code != 200 || strings.Count(got, `"timestamp"`) != want || strings.Contains(got, "web") != (want > 0) {
			t.Errorf("%s: code %d, %s", path, w.Code, got)
		}
	}
}
