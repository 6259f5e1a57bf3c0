package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// late is the latency above which a request is late.
	late = 50 * time.Millisecond
	// timeout is the latency after which a client gives up. The request counts as late.
	timeout = 5 * time.Second
)

// client sends requests at a constant rate, whether earlier ones were answered or not (an open loop). Latency counts from the time
// at which a request should have been sent.
type client struct {
	mu      sync.Mutex
	latency []time.Duration
	failed  int
}

// startClient starts a client whose first request is sent after the time phase. It runs until ctx ends.
func startClient(ctx context.Context, url string, phase time.Duration) *client {
	c := &client{}
	connections := &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	go func() {
		defer connections.CloseIdleConnections()
		for next := time.Now().Add(phase); sleep(ctx, time.Until(next)) == nil; next = next.Add(time.Second / serviceRate) {
			go c.send(connections, url, next)
		}
	}()
	return c
}

// send sends the request of a time and waits for the answer.
func (c *client) send(connections *http.Client, url string, intended time.Time) {
	response, err := connections.Get(url)
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
}

// take returns the latencies since the last call, and the number of failed requests.
func (c *client) take() ([]time.Duration, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	latency, failed := c.latency, c.failed
	c.latency, c.failed = nil, 0
	return latency, failed
}

// addLatency adds the latencies of a client.
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
