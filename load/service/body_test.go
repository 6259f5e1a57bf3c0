package service

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// manyNodes returns a reading of a number of nodes at a time.
func manyNodes(count int, at time.Time) load.Reading {
	reading := load.Reading{Source: "Test", Time: at, Window: 15 * time.Minute, Nodes: make(map[string]load.Node, count)}
	for i := range count {
		u := load.Utilization{Mean: float64(i*7919%1000) / 1009, StdDev: float64(i*104729%100) / 1013}
		reading.Nodes[fmt.Sprintf("node-%05d.example.com", i)] = load.Node{CPU: u, Memory: u, HasCPU: true, HasMemory: true}
	}
	return reading
}

// fetch requests a path with headers, without the decompression of http.Client.
func fetch(t *testing.T, s *served, path string, header map[string]string) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	must.Succeed(t, err)
	request.Header.Set("Accept-Encoding", "identity")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	must.Succeed(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	return response, content
}

func TestEncodings(t *testing.T) {
	s := serve(t)
	reading := manyNodes(500, noon)
	must.Succeed(t, s.store.Put(reading))
	var want bytes.Buffer
	must.Succeed(t, wire.Encode(&want, reading))
	for accepted, zipped := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "gzip; q=1.0": true, "": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0, br": false,
	} {
		response, content := fetch(t, s, "/watcher", map[string]string{"Accept-Encoding": accepted})
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != zipped {
			t.Errorf("Accept-Encoding %q: gzip %t, want %t", accepted, got, zipped)
		}
		if response.ContentLength != int64(len(content)) || response.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: length %d, %v", accepted, response.ContentLength, response.Header)
		}
		if zipped {
			unzip, err := gzip.NewReader(bytes.NewReader(content))
			must.Succeed(t, err)
			if content, err = io.ReadAll(unzip); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(content, want.Bytes()) {
			t.Errorf("Accept-Encoding %q: other bytes", accepted)
		}
	}
}

func TestETag(t *testing.T) {
	s := serve(t)
	s.put(t, nodes)
	first, _ := fetch(t, s, "/watcher", nil)
	etag := first.Header.Get("ETag")
	for header, want := range map[string]int{
		etag: 304, strings.TrimPrefix(etag, "W/"): 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200, "": 200,
	} {
		if got, content := fetch(t, s, "/watcher", map[string]string{"If-None-Match": header}); got.StatusCode != want ||
			want == 304 && len(content) > 0 {
			t.Errorf("If-None-Match %s: status %d, %d bytes, want %d", header, got.StatusCode, len(content), want)
		}
	}
	s.now = s.now.Add(time.Second)
	s.put(t, nodes)
	if got, _ := fetch(t, s, "/watcher", map[string]string{"If-None-Match": etag}); got.StatusCode != 200 ||
		got.Header.Get("ETag") == etag {
		t.Errorf("the next reading: status %d, ETag %s", got.StatusCode, got.Header.Get("ETag"))
	}
	s.now = s.now.Add(time.Hour)
	if got, _ := fetch(t, s, "/watcher", map[string]string{"If-None-Match": "*"}); got.StatusCode != 503 || got.Header.Get("ETag") != "" {
		t.Errorf("too old: status %d, %v", got.StatusCode, got.Header)
	}
}

// TestReadingIsEncodedOnce checks that concurrent requests share one encoding, and that requests for one
// node encode no other.
func TestReadingIsEncodedOnce(t *testing.T) {
	store := load.NewStore(time.Hour, nil)
	s := newServer(Config{Store: store, State: &State{}, Metrics: http.NotFoundHandler()})
	must.Succeed(t, store.Put(manyNodes(2000, time.Now())))
	one := httptest.NewRecorder()
	s.serveLoad(one, httptest.NewRequest(http.MethodGet, "/watcher?host=node-00001.example.com", nil))
	if one.Code != 200 || s.bodies.current != nil {
		t.Errorf("one node: status %d, encoded all: %t", one.Code, s.bodies.current != nil)
	}
	got := make([]*body, 16)
	var requests sync.WaitGroup
	for i := range got {
		requests.Go(func() { got[i], _ = s.bodies.get() })
	}
	requests.Wait()
	for _, b := range got {
		if b == nil || b != got[0] {
			t.Fatalf("bodies %v", got)
		}
	}
}

func TestResponsesAreLimited(t *testing.T) {
	s := serve(t)
	server := newServer(Config{Store: s.store, State: s.state, Metrics: http.NotFoundHandler()})
	s.put(t, nodes)
	for range cap(server.slots) {
		server.slots <- struct{}{}
	}
	respond := func(path string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		server.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer
	}
	full := respond("/watcher")
	if full.Code != 503 || full.Header().Get("Retry-After") != "1" || full.Header().Get("ETag") != "" {
		t.Errorf("status %d, %v", full.Code, full.Header())
	}
	for _, path := range []string{"/watcher?host=a", "/watcher/health", "/readyz", "/livez"} {
		if answer := respond(path); answer.Code != 200 {
			t.Errorf("%s: status %d", path, answer.Code)
		}
	}
	<-server.slots
	if answer := respond("/watcher"); answer.Code != 200 || len(server.slots) != cap(server.slots)-1 {
		t.Errorf("with a free slot: status %d, %d slots used", answer.Code, len(server.slots))
	}
}
