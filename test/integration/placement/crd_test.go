package placement

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// placementDocument is a document of testdata in api/placement/v1beta1.
type placementDocument struct {
	Name string         `json:"name"`
	Spec map[string]any `json:"spec"`
	// CRD is a part of the error of the API server, empty if only Validate refuses the document.
	CRD string `json:"crd"`
}

func placementDocuments(t *testing.T, file string) (out []placementDocument) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../../api/placement/v1beta1/testdata", file))
	must.Succeed(t, err)
	must.Succeed(t, yaml.Unmarshal(raw, &out))
	return out
}

// missing returns the values of a document that another document lacks or changes.
// Additional values, such as defaults, are allowed.
func missing(path string, want, got any) (out []string) {
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for name, member := range want {
			out = append(out, missing(path+"."+name, member, object[name])...)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return []string{fmt.Sprintf("%s: %v, want %v", path, got, want)}
		}
		for i := range want {
			out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), want[i], list[i])...)
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return []string{fmt.Sprintf("%s: %v, want %v", path, got, want)}
		}
	}
	return out
}

// Valid documents can be created in both versions and read in both with the same content.
// Invalid documents are rejected with an error that names the field.
func TestPlacementCRD(t *testing.T) {
	_, config, _ := testcluster.StartControlPlane(t, append(testcluster.ProjectCRDs(t), testcluster.OCMCRDs(t)...)...)
	c := testcluster.PlacementClient(t, config)
	for i, d := range placementDocuments(t, "accepted.yaml") {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(d.Name+" in "+version, func(t *testing.T) {
				name := fmt.Sprintf("%s-%d", version, i)
				must.Succeed(t, c.Create(t.Context(), testcluster.PlacementOf(version, name, runtime.DeepCopyJSON(d.Spec))))
				readEverywhere(t, c, name, d.Spec)
			})
		}
	}
	for _, d := range placementDocuments(t, "refused.yaml") {
		if d.CRD == "" {
			continue
		}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			err := c.Create(t.Context(), testcluster.PlacementOf(version, "refused", runtime.DeepCopyJSON(d.Spec)))
			if !apierrors.IsInvalid(err) || !strings.Contains(testcluster.WithoutValue(err.Error()), d.CRD) {
				t.Errorf("%s in %s: %v, want %s", d.Name, version, err, d.CRD)
			}
		}
	}
	t.Run("status", func(t *testing.T) { writeStatus(t, c) })
}

// readEverywhere reads a placement in both versions, as unstructured and as Go types.
func readEverywhere(t *testing.T, c client.Client, name string, spec map[string]any) {
	t.Helper()
	key := client.ObjectKey{Namespace: "default", Name: name}
	alpha, beta := testcluster.PlacementOf("v1alpha1", name, nil), testcluster.PlacementOf("v1beta1", name, nil)
	var older, newer v1beta1.Placement
	for _, object := range []client.Object{alpha, beta, &newer} {
		must.Succeed(t, c.Get(t.Context(), key, object))
	}
	if diff := missing("spec", spec, beta.Object["spec"]); len(diff) != 0 {
		t.Error(diff)
	}
	if diff := cmp.Diff(alpha.Object["spec"], beta.Object["spec"]); diff != "" {
		t.Error(diff)
	}
	must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(alpha.Object, &older))
	if diff := cmp.Diff(older.Spec, newer.Spec); diff != "" {
		t.Error(diff)
	}
	// An update from Go types keeps the values of the document, including 0.
	newer.Labels = map[string]string{"seen": "yes"}
	must.Succeed(t, c.Update(t.Context(), &newer))
	must.Succeed(t, c.Get(t.Context(), key, beta))
	newer.Spec.Default()
	if errs := newer.Spec.Validate(); len(errs) != 0 {
		t.Error(errs)
	}
	want := runtime.DeepCopyJSON(spec)
	unstructured.RemoveNestedField(want, "decisionStrategy", "groupStrategy")
	for _, empty := range []string{"prioritizerPolicy", "spreadPolicy"} {
		if m, _ := want[empty].(map[string]any); len(m) == 0 || m["mode"] == "" {
			delete(want, empty)
		}
	}
	if diff := missing("spec", want, beta.Object["spec"]); len(diff) != 0 {
		t.Errorf("written back: %v", diff)
	}
}

// writeStatus writes a status with all fields in one version and reads it in the other.
func writeStatus(t *testing.T, c client.Client) {
	t.Helper()
	placement := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "status", Namespace: "default"}}
	must.Succeed(t, c.Create(t.Context(), placement))
	want := clusterv1beta1.PlacementStatus{
		NumberOfSelectedClusters: 3,
		DecisionGroups: []clusterv1beta1.DecisionGroupStatus{
			{DecisionGroupIndex: 0, DecisionGroupName: "canary", Decisions: []string{"status-decision-0"}, ClustersCount: 3},
		},
		Conditions: []metav1.Condition{{
			Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled",
			LastTransitionTime: metav1.Unix(1_795_239_886, 0),
		}},
		LastScoreUpdateTime: new(metav1.Unix(1_795_239_886, 0)),
	}
	placement.Status = want
	must.Succeed(t, c.Status().Update(t.Context(), placement))
	older := testcluster.PlacementOf("v1alpha1", "status", nil)
	must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(placement), older))
	var got v1beta1.Placement
	must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(older.Object, &got))
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Error(diff)
	}
}

// Plimsoll's CRD has all fields of Open Cluster Management's CRD with the same names, types
// and defaults. Both versions have the same schema.
func TestPlacementCRDIsASuperset(t *testing.T) {
	t.Parallel()
	ours := testcluster.ReadCRD(t, program.File(t, testcluster.PlacementCRD))
	theirs := testcluster.ReadCRD(t,
		filepath.Join(testcluster.ModuleFolder(t, "open-cluster-management.io/api"), testcluster.OCMPlacementCRD))
	if diff := cmp.Diff(theirs.Spec.Names, ours.Spec.Names); diff != "" {
		t.Error(diff)
	}
	alpha, beta := ours.Spec.Versions[0], ours.Spec.Versions[1]
	if diff := cmp.Diff(alpha.Schema, beta.Schema); diff != "" || alpha.Name != "v1alpha1" || beta.Name != "v1beta1" || alpha.Storage ||
		!beta.Storage || ours.Spec.Conversion != nil {
		t.Error(alpha.Name, beta.Name, diff)
	}
	their := theirs.Spec.Versions[0]
	if diff := cmp.Diff(their.AdditionalPrinterColumns, beta.AdditionalPrinterColumns); diff != "" {
		t.Error(diff)
	}
	var compare func(path string, their, our apiextensionsv1.JSONSchemaProps)
	compare = func(path string, their, our apiextensionsv1.JSONSchemaProps) {
		if their.Type != our.Type || their.Format != our.Format || their.Pattern != our.Pattern || their.XIntOrString != our.XIntOrString ||
			!cmp.Equal(their.Default, our.Default) {
			t.Errorf("%s: type, format, pattern or default differs", path)
		}
		for name, theirProperty := range their.Properties {
			ourProperty, exists := our.Properties[name]
			if !exists {
				t.Errorf("%s.%s is missing", path, name)
				continue
			}
			compare(path+"."+name, theirProperty, ourProperty)
		}
		if their.Items != nil {
			compare(path+"[]", *their.Items.Schema, *our.Items.Schema)
		}
	}
	compare("", *their.Schema.OpenAPIV3Schema, *beta.Schema.OpenAPIV3Schema)
}
