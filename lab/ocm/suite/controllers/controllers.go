// Package controllers takes the place of the placement controller of Open Cluster Management in its tests.
package controllers

import (
	"context"

	"github.com/openshift/library-go/pkg/controller/controllercmd"
)

// RunControllerManager does nothing: Plimsoll's controller decides the placements, in a process of its own.
func RunControllerManager(context.Context, *controllercmd.ControllerContext) error { return nil }
