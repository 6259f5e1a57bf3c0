package doctor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
)

// buffersCRD is the name of the CRD of CapacityBuffers.
const buffersCRD = "capacitybuffers.autoscaling.x-k8s.io"

// checkDefinitions checks whether the CRDs that the installed components require exist, and whether
// Plimsoll's CRDs are from this version.
func (e *examination) checkDefinitions(ctx context.Context) error {
	installed := e.controllers()
	if slices.Contains(installed, "slack") || len(e.components) == 0 {
		if err := e.checkDefinition(ctx, crd.ResourceSlacks, true); err != nil {
			return err
		}
	}
	if !slices.Contains(installed, "placement") {
		return nil
	}
	for _, manifest := range crd.OfPlacements() {
		if err := e.checkDefinition(ctx, manifest, false); err != nil {
			return err
		}
	}
	return nil
}

// controllers returns the controllers that the installed programs run.
func (e *examination) controllers() []string {
	var all []string
	for _, d := range e.componentsNamed("controller") {
		all = append(all, controllersOf(d)...)
	}
	return all
}

// controllersOf returns the controllers that a Deployment of plimsoll-controller runs.
func controllersOf(d *appsv1.Deployment) []string {
	if list, set := flagOf(d, "controllers"); set {
		return strings.Split(list, ",")
	}
	return []string{"slack", "placement"} // the default of the flag
}

// checkDefinition checks whether a CRD is installed and serves its versions. If own is set, its schema
// must equal the schema of the manifest.
func (e *examination) checkDefinition(ctx context.Context, manifest []byte, own bool) error {
	var want, found apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(manifest, &want); err != nil {
		return err
	}
	fix := "helm upgrade plimsoll charts/plimsoll, or kubectl apply --server-side -f config/crd"
	if !own {
		fix = "helm upgrade plimsoll charts/plimsoll --set crds.fleet=true, unless Open Cluster Management installs it"
	}
	err := e.client.Get(ctx, client.ObjectKey{Name: want.Name}, &found)
	switch {
	case apierrors.IsNotFound(err):
		e.add(Problem, "the CRD "+want.Name+" is missing", fix)
		return nil
	case err != nil:
		return err
	}
	for _, version := range want.Spec.Versions {
		i := slices.IndexFunc(found.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version.Name
		})
		switch {
		case i < 0 || !found.Spec.Versions[i].Served:
			// A hub may serve fewer versions than the CRDs of Plimsoll.
			if own || version.Storage {
				e.add(Problem, fmt.Sprintf("the CRD %s does not serve %s", want.Name, version.Name), fix)
				return nil
			}
		case own && !reflect.DeepEqual(found.Spec.Versions[i].Schema, version.Schema):
			e.add(Warning, "the CRD "+want.Name+" differs from that of this version of Plimsoll in fields or their validation", fix)
			return nil
		}
	}
	if !apihelpers.IsCRDConditionTrue(&found, apiextensionsv1.Established) {
		e.add(Problem, "the CRD "+want.Name+" is not established", "kubectl describe crd "+want.Name)
		return nil
	}
	e.ok("%s is installed", want.Name)
	return nil
}
