package placement

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// A new placement is two writes, as the API server receives them: the PlacementDecision with its decisions, and the status of
// the placement. On a hub with the CRDs of Open Cluster Management the decisions are a third write. A change is two writes on
// both hubs. If a controller is killed after the first write, the next controller makes the remaining writes.
func TestPlacementWrites(t *testing.T) {
	for name, hub := range map[string]struct {
		start  func(*testing.T) *testcluster.Cluster
		create []string
	}{
		"own CRDs": {testcluster.StartPlacementHub, []string{"POST v1alpha1 placementdecisions"}},
		"CRDs of Open Cluster Management": {
			startOCMHub, []string{"POST v1beta1 placementdecisions", "PUT v1beta1 placementdecisions/status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := hub.start(t)
			h.Apply(t, testcluster.Example(t, "fleet.yaml")[:3]...)
			for _, cluster := range []string{"cluster1", "cluster2", "cluster3"} {
				h.Apply(t, testcluster.ManagedCluster(cluster, "50"))
			}
			config, err := h.Config("test", "system:masters")
			must.Succeed(t, err)
			proxy, kubeconfig := apiproxy.Start(t, config), filepath.Join(t.TempDir(), "kubeconfig")
			must.Succeed(t, proxy.WriteKubeconfig(kubeconfig))
			flags := []string{"--kubeconfig=" + kubeconfig, "--controllers=placement", "--adopt=all", "--leader-elect=false"}
			controller := h.StartController(t, flags...)
			decisions := h.RecordChanges(t, testcluster.DecisionKind)
			seen := 0
			// expect waits for the writes of placements since the last call.
			expect := func(what string, want ...string) {
				t.Helper()
				var got []string
				eventually.True(t, what+" does not cause the expected writes", controller, func(context.Context) (bool, error) {
					got = placementWrites(proxy)[seen:]
					return len(got) >= len(want), nil
				})
				if seen += len(got); !slices.Equal(got, want) {
					t.Errorf("%s caused the writes %v, want %v", what, got, want)
				}
			}
			const status = "PATCH v1beta1 placements/status"
			h.Apply(t, testcluster.PlacementIn(testcluster.Team, "first", testcluster.Exactly(2, nil)))
			h.AwaitChosen(t, controller, "first", "cluster1", "cluster2")
			expect("a new placement", append(slices.Clone(hub.create), status)...)

			h.Patch(
				t, testcluster.PlacementIn(testcluster.Team, "first", nil), map[string]any{"spec": map[string]any{"numberOfClusters": 3}},
			)
			h.AwaitChosen(t, controller, "first", "cluster1", "cluster2", "cluster3")
			expect("a change", "PUT v1beta1 placementdecisions/status", status)

			wait := killAtFirst(t, h, controller.Kill)
			h.Apply(t, testcluster.PlacementIn(testcluster.Team, "second", testcluster.Exactly(2, nil)))
			wait()
			controller = h.StartController(t, flags...)
			h.AwaitChosen(t, controller, "second", "cluster1", "cluster2")
			expect("a placement whose controller is killed", append(slices.Clone(hub.create), status)...)

			// The last placement shows that the other placements cause no further writes.
			h.Apply(t, testcluster.PlacementIn(testcluster.Team, "third", testcluster.Exactly(1, nil)))
			h.AwaitChosen(t, controller, "third", "cluster1")
			expect("a placement after a restart", append(slices.Clone(hub.create), status)...)
			if len(hub.create) == 1 {
				expectComplete(t, decisions)
			}
			controller.Stop(t)
		})
	}
}

// startOCMHub starts a hub with the CRDs of Open Cluster Management 1.2, which lack fields
// of 1.3: sortBy, scoreRateLimit and lastScoreUpdateTime of placements, and the scores of
// decisions. They have only the versions that are stored.
func startOCMHub(t *testing.T) *testcluster.Cluster {
	t.Helper()
	folder := t.TempDir()
	files := append(testcluster.OCMCRDs(t),
		filepath.Join(testcluster.ModuleFolder(t, "open-cluster-management.io/api"), testcluster.OCMPlacementCRD))
	for i, file := range files {
		crd := testcluster.ReadCRD(t, file)
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage })
		for v := range crd.Spec.Versions {
			schema := crd.Spec.Versions[v].Schema.OpenAPIV3Schema
			for _, path := range [][]string{
				{"spec", "sortBy"}, {"spec", "scoreRateLimit"}, {"status", "lastScoreUpdateTime"}, {"status", "decisions", "score"},
			} {
				dropField(schema, path...)
			}
		}
		raw, err := yaml.Marshal(crd)
		must.Succeed(t, err)
		files[i] = filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		must.Succeed(t, os.WriteFile(files[i], raw, 0o600))
	}
	return testcluster.StartWithCRDs(t, files...)
}

// dropField removes a field from a schema, if it exists.
func dropField(schema *apiextensionsv1.JSONSchemaProps, path ...string) {
	if schema.Items != nil {
		dropField(schema.Items.Schema, path...)
		return
	}
	if len(path) == 1 {
		delete(schema.Properties, path[0])
		return
	}
	if child, ok := schema.Properties[path[0]]; ok {
		dropField(&child, path[1:]...)
		schema.Properties[path[0]] = child
	}
}

// placementWrites returns the successful writes of placements and PlacementDecisions through a proxy, such as
// "PUT v1beta1 placementdecisions/status".
func placementWrites(proxy *apiproxy.Proxy) (out []string) {
	for _, write := range proxy.Writes() {
		path, found := strings.CutPrefix(write.Path, "/apis/cluster.open-cluster-management.io/")
		if !found || write.Method == http.MethodGet || !write.Succeeded() {
			continue
		}
		parts := strings.Split(path, "/") // VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE
		resource := parts[3]
		if len(parts) > 5 {
			resource += "/" + parts[5]
		}
		out = append(out, write.Method+" "+parts[0]+" "+resource)
	}
	return out
}

// expectComplete fails if a PlacementDecision was added without decisions.
func expectComplete(t *testing.T, r *testcluster.ChangeRecorder) {
	t.Helper()
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, event := range r.Events {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatal(event)
		}
		decisions, _, err := unstructured.NestedSlice(object.Object, "status", "decisions")
		if event.Type == watch.Added && (err != nil || len(decisions) == 0) {
			t.Errorf("%s was added without decisions (%v)", object.GetName(), err)
		}
	}
}
