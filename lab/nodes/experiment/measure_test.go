package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestMeasureEnds expects that a run ends soon after its context, with which the control plane stops: no pods are deleted.
func TestMeasureEnds(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	config := &rest.Config{Host: server.URL}
	server.Close()
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	e := &experiment{cluster: &realnodes.Cluster{Client: client}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := e.measure(ctx, run{warm, 1, defaultArm})
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the run ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the run has not ended after 10 s")
	}
}
