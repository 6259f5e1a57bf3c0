package placement

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// creationVersion is a version of PlacementDecision in the project's CRD without the subresource status, so that the object
// and its decisions are one write. The CRD of Open Cluster Management does not have it.
const creationVersion = "v1alpha1"

var creationKind = schema.GroupVersionKind{Group: clusterv1beta1.GroupName, Version: creationVersion, Kind: "PlacementDecision"}

// create creates a PlacementDecision of a placement with its decisions, if the hub serves creationVersion, or without them. It
// reports whether the hub has all of the object, and sets the resource version of the object.
func (c *Controller) create(ctx context.Context, decision *clusterv1beta1.PlacementDecision) (complete bool, err error) {
	complete, err = c.createComplete(ctx, decision)
	if err == nil && decision.ResourceVersion == "" { // not created
		c.metrics.countWrite("create")
		complete = len(decision.Status.Decisions) == 0
		err = c.client.Create(ctx, decision)
	}
	return complete, err
}

// createComplete creates a PlacementDecision with its decisions and sets its resource version. It creates nothing if the hub
// does not serve creationVersion, and reports whether the hub has stored the decisions.
func (c *Controller) createComplete(ctx context.Context, decision *clusterv1beta1.PlacementDecision) (complete bool, err error) {
	if c.dropped.initialStatus.Load() {
		return false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decision)
	if err != nil {
		return false, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(creationKind)
	err = c.client.Create(ctx, object)
	if resources.IsNotServed(err) {
		c.dropped.initialStatus.Store(true)
		return false, nil
	}
	c.metrics.countWrite("create")
	if err != nil {
		return false, err
	}
	decision.ResourceVersion = object.GetResourceVersion()
	_, complete, err = unstructured.NestedFieldNoCopy(object.Object, "status", "decisions")
	if !complete {
		c.dropped.initialStatus.Store(true)
	}
	return complete, err
}
