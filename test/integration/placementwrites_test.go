package integration

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
)

// A new placement is two writes, as the API server receives them: the PlacementDecision with its decisions, and the status of
// the placement. On a hub with the CRDs of Open Cluster Management the decisions are a third write. A change is two writes on
// both hubs. If a controller is killed after the first write, the next controller makes the remaining writes.
func TestPlacementWrites(t *testing.T) {
	t.Parallel()
	for name, hub := range map[string]struct {
		start  func(*testing.T) *testCluster
		create []string
	}{
		"own CRDs": {startPlacementHub, []string{"POST v1alpha1 placementdecisions"}},
		"CRDs of Open Cluster Management": {
			startOCMHub, []string{"POST v1beta1 placementdecisions", "PUT v1beta1 placementdecisions/status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hub.start(t)
			h.apply(t, example(t, "fleet.yaml")[:3]...)
			for _, cluster := range []string{"cluster1", "cluster2", "cluster3"} {
				h.apply(t, managedCluster(cluster, "50"))
			}
			config, err := h.Config("test", "system:masters")
			if err != nil {
				t.Fatal(err)
			}
			proxy, kubeconfig := apiproxy.Start(t, config), filepath.Join(t.TempDir(), "kubeconfig")
			if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
				t.Fatal(err)
			}
			flags := []string{"--kubeconfig=" + kubeconfig, "--controllers=placement", "--adopt=all", "--leader-elect=false"}
			controller := h.startController(t, flags...)
			decisions := h.recordChanges(t, decisionKind)
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
			h.apply(t, placementIn(team, "first", exactly(2, nil)))
			h.awaitChosen(t, controller, "first", "cluster1", "cluster2")
			expect("a new placement", append(slices.Clone(hub.create), status)...)

			h.patch(t, placementIn(team, "first", nil), map[string]any{"spec": map[string]any{"numberOfClusters": 3}})
			h.awaitChosen(t, controller, "first", "cluster1", "cluster2", "cluster3")
			expect("a change", "PUT v1beta1 placementdecisions/status", status)

			wait := h.killAtFirst(t, controller.Kill)
			h.apply(t, placementIn(team, "second", exactly(2, nil)))
			wait()
			controller = h.startController(t, flags...)
			h.awaitChosen(t, controller, "second", "cluster1", "cluster2")
			expect("a placement whose controller is killed", append(slices.Clone(hub.create), status)...)

			// The last placement shows that the other placements cause no further writes.
			h.apply(t, placementIn(team, "third", exactly(1, nil)))
			h.awaitChosen(t, controller, "third", "cluster1")
			expect("a placement after a restart", append(slices.Clone(hub.create), status)...)
			if len(hub.create) == 1 {
				decisions.expectComplete(t)
			}
			controller.Stop(t)
		})
	}
}

// startOCMHub starts a hub with the CRDs of Open Cluster Management 1.2, which lack fields
// of 1.3: sortBy, scoreRateLimit and lastScoreUpdateTime of placements, and the scores of
// decisions. They have only the versions that are stored.
func startOCMHub(t *testing.T) *testCluster {
	t.Helper()
	folder := t.TempDir()
	files := append(ocmCRDs(t), filepath.Join(moduleFolder(t, "../..", "open-cluster-management.io/api"), ocmPlacementCRD))
	for i, file := range files {
		crd := readCRD(t, file)
		crd.Spec.Versions = slices.DeleteFunc(
			crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage },
		)
		for v := range crd.Spec.Versions {
			schema := crd.Spec.Versions[v].Schema.OpenAPIV3Schema
			for _, path := range [][]string{
				{"spec", "sortBy"}, {"spec", "scoreRateLimit"}, {"status", "lastScoreUpdateTime"}, {"status", "decisions", "score"},
			} {
				dropField(schema, path...)
			}
		}
		raw, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(files[i], raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startClusterWithCRDs(t, files...)
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
func (r *changeRecorder) expectComplete(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, event := range r.events {
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
