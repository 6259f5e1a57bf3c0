package kube

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// filtered returns a body after the filter, which receives it in the given way.
func filtered(t testing.TB, body io.Reader) string {
	t.Helper()
	out, err := io.ReadAll(&boundedBody{body: io.NopCloser(body)})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestBoundQuantities(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"good":      {`{"status":{"allocatable":{"cpu":"4","memory":"16Gi"},"capacity":{"cpu":8}}}`, ""},
		"huge":      {`{"allocatable":{"cpu":"1e2147483647","memory":"16Gi"}}`, `{"allocatable":{"memory":"16Gi"}}`},
		"tiny":      {`{"capacity":{"cpu":"1e-2147483647"},"x":1}`, `{"capacity":{},"x":1}`},
		"number":    {`{"capacity":{"cpu":1e-999999999}}`, `{"capacity":{}}`},
		"escaped":   {`{"capacity":{"cpu":"1e-\u0039999999"}}`, `{"capacity":{}}`},
		"both":      {`{"allocatable":{"cpu":"1e99"},"capacity":{"cpu":"1e-99"}}`, `{"allocatable":{},"capacity":{}}`},
		"spaces":    {"{\"capacity\": \n{\"cpu\": \"1e99\"}}", "{\"capacity\": \n{}}"},
		"label":     {`{"labels":{"capacity":"1e999","allocatable":"1e-999"}}`, ""},
		"text":      {`{"annotations":{"a":"{\"capacity\":{\"cpu\":\"1e999\"}}"}}`, ""},
		"managed":   {`{"f:capacity":{".":{},"f:cpu":{}}}`, ""},
		"brace":     {`{"capacity":{"cpu":"1}","memory":"1e999"},"a":{}}`, `{"capacity":{"cpu":"1}"},"a":{}}`},
		"null":      {`{"capacity":null,"allocatable":{}}`, ""},
		"usage":     {`{"usage":{"cpu":"1e-99n","memory":"1e2147483647"}}`, `{"usage":{}}`},
		"status":    {`{"target":{"cpu":"1e999"},"total":{"cpu":"1"},"requests":{"memory":"1e-999"}}`, `{"target":{},"total":{"cpu":"1"},"requests":{}}`},
		"truncated": {`{"capacity":{"cpu":"1e`, ""},
		"key":       {`{"capac`, ""},
		"empty":     {``, ""},
	} {
		want := tc.want
		if want == "" {
			want = tc.body
		}
		if got := filtered(t, strings.NewReader(tc.body)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := filtered(t, iotest.OneByteReader(strings.NewReader(tc.body))); got != want {
			t.Errorf("%s, byte by byte: %s, want %s", name, got, want)
		}
	}
	many := `{"items":[` + strings.Repeat(`{"status":{"allocatable":{"cpu":"1e999","memory":"1"}}},`, 10_000) + `{}]}`
	if got := filtered(t, strings.NewReader(many)); got != strings.ReplaceAll(many, `"cpu":"1e999",`, "") {
		t.Error("a long list is not filtered")
	}
	endless := io.MultiReader(strings.NewReader(`{"capacity":{"cpu":"`), strings.NewReader(strings.Repeat("9", maxResources+readSize)))
	if _, err := io.ReadAll(&boundedBody{body: io.NopCloser(endless)}); err == nil || !strings.Contains(err.Error(), "exceeds") {
		t.Errorf("endless: %v", err)
	}
	if _, err := io.ReadAll(&boundedBody{body: io.NopCloser(iotest.ErrReader(errors.New("reset")))}); err == nil || err.Error() != "reset" {
		t.Errorf("error: %v", err)
	}
}

// A client decodes the clusters of a hub in a short time, and receives an event of a watch
// when it is sent.
func TestClientsDecodeAbsurdQuantities(t *testing.T) {
	sent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/managedclusters") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"1e-2147483647","memory":"1Gi"}}}`+"\n")
		w.(http.Flusher).Flush()
		<-sent
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	BoundQuantities(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(server.URL + "/apis/cluster.open-cluster-management.io/v1/managedclusters?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	start := time.Now()
	var cluster clusterv1.ManagedCluster
	if err := json.NewDecoder(response.Body).Decode(&cluster); err != nil {
		t.Fatal(err)
	}
	close(sent)
	if took := time.Since(start); took > time.Minute || len(cluster.Status.Allocatable) != 1 {
		t.Errorf("%v after %s", cluster.Status.Allocatable, took)
	}
}

// TestUndecodedPaths checks which responses are filtered: those with resources, and not the CRDs of them, whose schemas
// have fields with the same names.
func TestUndecodedPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"/apis/cluster.open-cluster-management.io/v1/managedclusters":                           true,
		"/apis/cluster.open-cluster-management.io/v1/managedclusters/cluster1/status":           true,
		"/apis/plimsoll.dev/v1alpha1/resourceslacks":                                            true,
		"/k8s/clusters/c-1/apis/plimsoll.dev/v1alpha1/resourceslacks/general":                   true,
		"/apis/metrics.k8s.io/v1beta1/nodes":                                                    true,
		"/api/v1/nodes":                                                                         false,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/resourceslacks.plimsoll.dev":   false,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":                               false,
		"/apis/cluster.open-cluster-management.io/v1beta1/namespaces/default/placements/a":      false,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/managedclusters.cluster.x.y.z": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"base":{"description":"text"}}`)
		}))
		config := &rest.Config{Host: server.URL}
		BoundQuantities(config)
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		server.Close()
		if filtered := string(body) == `{"base":{}}`; filtered != want {
			t.Errorf("%s: %s, want filtered %t", path, body, want)
		}
	}
}

// FuzzBoundQuantities filters any body. It must not change valid JSON except for quantities
// out of bounds, however the body is divided.
func FuzzBoundQuantities(f *testing.F) {
	f.Add([]byte(`{"allocatable":{"cpu":"1e2147483647","memory":"16Gi"},"capacity":{"cpu":"4"}}`))
	f.Add([]byte(`{"capacity":"x","labels":{"capacity":"1e999"},"allocatable": {"a":"}"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		text := string(body)
		once := filtered(t, strings.NewReader(text))
		if got := filtered(t, iotest.OneByteReader(strings.NewReader(text))); got != once {
			t.Errorf("%q and byte by byte %q", once, got)
		}
		if json.Valid(body) && !json.Valid([]byte(once)) {
			t.Errorf("%q became %q", text, once)
		}
	})
}
