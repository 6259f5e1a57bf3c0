package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
)

// buffers is the CRD of what autoscalers keep slack by.
const buffers = "capacitybuffers.autoscaling.x-k8s.io"

// definitions looks for the CRDs that what is installed needs, and whether our own
// are those of this version.
func (x *examination) definitions(ctx context.Context) error {
	installed := x.controllers()
	if slices.Contains(installed, "slack") || len(x.components) == 0 {
		if err := x.definition(ctx, crd.ResourceSlacks, true); err != nil {
			return err
		}
	}
	if !slices.Contains(installed, "placement") {
		return nil
	}
	if err := x.definition(ctx, crd.Placements, false); err != nil {
		return err
	}
	return fs.WalkDir(crd.OCM, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		manifest, err := crd.OCM.ReadFile(path)
		if err != nil {
			return err
		}
		return x.definition(ctx, manifest, false)
	})
}

// controllers returns what the controllers are told to control.
func (x *examination) controllers() []string {
	var all []string
	for _, d := range x.ofKind("controller") {
		all = append(all, controllersOf(d)...)
	}
	return all
}

// controllersOf returns what a controller is told to control.
func controllersOf(d *appsv1.Deployment) []string {
	for _, argument := range argumentsOf(d) {
		if list, ok := strings.CutPrefix(argument, "--controllers="); ok {
			return strings.Split(list, ",")
		}
	}
	return []string{"slack", "placement"} // its default
}

// definition looks for one CRD. One of our own has to be as this version has it.
func (x *examination) definition(ctx context.Context, manifest []byte, own bool) error {
	var want, have apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(manifest, &want); err != nil {
		return err
	}
	fix := "helm upgrade plimsoll charts/plimsoll, or kubectl apply --server-side -f config/crd"
	if !own {
		fix = "helm upgrade plimsoll charts/plimsoll --set crds.fleet=true, unless Open Cluster Management installs it"
	}
	err := x.client.Get(ctx, client.ObjectKey{Name: want.Name}, &have)
	switch {
	case apierrors.IsNotFound(err):
		x.add(Problem, "the CRD "+want.Name+" is missing", fix)
		return nil
	case err != nil:
		return err
	}
	for _, version := range want.Spec.Versions {
		i := slices.IndexFunc(have.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		switch {
		case i < 0 || !have.Spec.Versions[i].Served:
			// A hub may serve fewer versions than our own CRD has.
			if own || version.Storage {
				x.add(Problem, fmt.Sprintf("the CRD %s does not serve %s", want.Name, version.Name), fix)
				return nil
			}
		case own && !reflect.DeepEqual(have.Spec.Versions[i].Schema, version.Schema):
			x.add(Warning, fmt.Sprintf("the CRD %s is not that of this version of plimsoll: fields and their rules differ", want.Name), fix)
			return nil
		}
	}
	if !slices.ContainsFunc(have.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		x.add(Problem, "the CRD "+want.Name+" is not established", "kubectl describe crd "+want.Name)
		return nil
	}
	x.ok("%s is there", want.Name)
	return nil
}
