package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const node = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {pods: 5}}\n"

// pod returns the manifest of a pod.
func pod(name, nodeName string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {nodeName: \"" + nodeName + "\", containers: [{name: c}]}\n"
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestRead(t *testing.T) {
	content := "# a comment\n---\n" + node + "---\n" + pod("b", "") + "---\n---\n" + pod("a", "node-1") + `---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {containers: [{name: c, resources: {limits: {cpu: "2"}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: ended}, spec: {nodeName: node-1, containers: [{name: c}]}, status: {phase: Succeeded}}
---
{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "e", "namespace": "other"}, "spec": {"nodeName": "gone"}}]}
---
apiVersion: v1
kind: Node
metadata: {name: node-2}
status: {capacity: {cpu: "4"}, cpus: 3}
`
	objects, err := Read([]string{write(t, "all.yaml", content)}, nil)
	must.Succeed(t, err)
	var names []string
	for _, n := range objects.Nodes {
		names = append(names, n.Name)
	}
	for _, p := range objects.Running {
		names = append(names, p.Namespace+"/"+p.Name+"@"+p.Spec.NodeName)
	}
	for _, p := range objects.Pending {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	want := "node-1 node-2 default/a@node-1 other/e@gone default/b default/d"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	// The defaults of the API server: a limit without a request is also the request, and a node
	// without allocatable resources has its capacity.
	if got := objects.Pending[1].Spec.Containers[0].Resources.Requests.Cpu().String(); got != "2" {
		t.Errorf("request %s, want 2", got)
	}
	if got := objects.Nodes[1].Status.Allocatable.Cpu().String(); got != "4" {
		t.Errorf("allocatable %s, want 4", got)
	}
	warnings := strings.Join(objects.Warnings, "\n")
	for _, want := range []string{`unknown field "status.cpus"`, "other/e is ignored: its node gone"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings %q lack %q", warnings, want)
		}
	}
}

func TestReadFoldersAndStandardInput(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml": node, "sub/a.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`, "README.md": "not a manifest",
	} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	}
	objects, err := Read([]string{dir, "-"}, strings.NewReader(pod("q", "")))
	if err != nil || len(objects.Nodes) != 1 || len(objects.Pending) != 2 {
		t.Errorf("%+v, %v", objects, err)
	}
}

func TestReadErrors(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"unsupported version": {
			"apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: c}",
			`document 1: Deployment c: apiVersion: invalid value "apps/v1beta1": must be apps/v1`,
		},
		"no kind":         {"apiVersion: v1\nmetadata: {name: c}", "document 1: kind: required: must be the kind of an object"},
		"no version":      {"kind: Node\nmetadata: {name: c}", "document 1: apiVersion: required: must be the version of Node"},
		"an empty object": {"{}", "document 1: kind: required"},
		"items":           {"apiVersion: v1\nkind: List\nitems: {}", "document 1: json: cannot unmarshal object into Go struct field header.items"},
		"separator":       {node + "--- a\n", "document 1: invalid Yaml document separator: a"},
		"an empty file":   {"# only a comment\n", "found no nodes in the input: must have at least one (export with kubectl get nodes,pods -A -o yaml)"},
		"bad quantity in a list": {
			`{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"containers": [
{"name": "a"}, {"name": "b", "resources": {"limits": {"nvidia.com/gpu": "1O"}}}]}}]}`,
			`document 1: item 1: Pod shop/web: spec.containers[1].resources.limits[nvidia.com/gpu]: quantities must match the regular expression`,
		},
		"negative amount of a node": {
			"apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {capacity: {cpu: 4}, allocatable: {cpu: -1}}",
			`document 1: Node node-1: status.allocatable.cpu: invalid value "-1": must be at least 0, and below 8Ei`,
		},
		"negative request": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}, {name: b, resources: {requests: {memory: -5Gi}}}]}",
			`document 1: Pod p: spec.containers[1].resources.requests.memory: invalid value "-5Gi": must be at least 0`,
		},
		"large limit": { // a quantity with this value is 0 as an integer
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {initContainers: [{name: a, resources: {limits: {memory: 1e30}}}]}",
			`document 1: Pod p: spec.initContainers[0].resources.limits.memory: invalid value "1e+30": must be at least 0`,
		},
		"unknown resource": {
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m, resources: {requests: {cpu: 0,5}}}]}}`,
			`document 1: Pod a: spec.containers[0].resources: unknown resource "5": must be cpu, memory, ephemeral-storage, hugepages-SIZE, or have ` +
				"a domain such as nvidia.com/gpu",
		},
		"negative requests of the pod": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {resources: {requests: {cpu: -1m}}}",
			`document 1: Pod p: spec.resources.requests.cpu: invalid value "-1m": must be at least 0`,
		},
		"negative overhead": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {overhead: {cpu: -1m}}",
			`document 1: Pod p: spec.overhead.cpu: invalid value "-1m": must be at least 0`,
		},
		"JSON values with a comma": {
			`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}`,
			"document 1: found text after the end of the object: must be one object; manifests may have more, separated by lines with ---",
		},
		"bad number": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c}\nspec: {replicas: two}",
			`document 1: Deployment c: spec.replicas: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`,
		},
		"no name":         {"apiVersion: v1\nkind: Node\nmetadata: {}", "document 1: a node without metadata.name"},
		"duplicate":       {node + "---\n" + strings.Replace(node, "5", "6", 1), "document 2: duplicate node node-1, first defined in "},
		"duplicate field": {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nmetadata: {name: b}", `line 4: key "metadata" already set in map`},
		"no nodes":        {pod("p", "") + "---\n" + pod("q", ""), "-o yaml); ignored: 2 Pod"},
		"no nodes, other kinds": {
			pod("p", "") + "---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}",
			"found no nodes in the input: must have " +
				"at least one (export with kubectl get nodes,pods -A -o yaml); ignored: 1 Pod, 1 Rollout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "x.yaml", tc.content)
			_, err := Read([]string{path}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if err != nil && !strings.HasPrefix(tc.want, "found no nodes") && !strings.HasPrefix(name, "no nodes") &&
				!strings.HasPrefix(err.Error(), path) {
				t.Errorf("error %v does not start with the file", err)
			}
		})
	}
	if _, err := Read([]string{filepath.Join(t.TempDir(), "none.yaml")}, nil); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Read([]string{t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "no files ending in .yaml") {
		t.Errorf("a folder without manifests: %v", err)
	}
}

// TestReadOtherKinds checks that objects of other kinds are ignored and counted in one line, and that a
// kind with the same name in another group is not read.
func TestReadOtherKinds(t *testing.T) {
	const rollout = "---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec: {replicas: many}\n"
	content := node + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {template: '{{ .x }}'}\n" + rollout + rollout +
		"---\napiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: v1\nkind: List\nitems:\n" +
		"- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: x}}\n"
	const want = "ignored: 3 Rollout, 1 ConfigMap, 1 Service.serving.knative.dev"
	objects, err := Read([]string{"-"}, strings.NewReader(content))
	if err != nil || len(objects.Nodes) != 1 || len(objects.Others) != 0 || len(objects.Warnings) != 1 || objects.Warnings[0] != want {
		t.Errorf("%+v, %v, want the warning %s", objects, err, want)
	}
	if err := RefuseWarnings(objects.Warnings); err == nil || err.Error() != "--strict: "+want {
		t.Errorf("strict: %v", err)
	}
	if err := RefuseWarnings(nil); err != nil {
		t.Errorf("strict, without warnings: %v", err)
	}
	many := RefuseWarnings(slices.Repeat([]string{"w"}, maxRefused+2))
	if many == nil || many.Error() != "--strict: w; w; w; w; w; and 2 more" {
		t.Errorf("strict, many warnings: %v", many)
	}
}

// TestReadFlow checks that YAML in flow style and several JSON values in one file are read.
func TestReadFlow(t *testing.T) {
	const other = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}`
	for name, content := range map[string]string{
		"flow style":          "{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n" + other,
		"flow, several lines": "# a\n{apiVersion: v1,\n kind: Node, # kind\n metadata: {name: a}}\n---\n" + other,
		"JSON values":         strings.Replace(other, "b", "a", 1) + "\n" + other + "\n",
		"end of a document":   strings.Replace(node, "node-1", "a", 1) + "...\n---\n" + strings.Replace(node, "node-1", "b", 1) + "...\n",
		"typed list":          `{apiVersion: v1, kind: NodeList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}`,
	} {
		objects, err := ReadFrom(Files([]string{"-"}, strings.NewReader(content)), false)
		if err != nil || len(objects.Nodes) != 2 || objects.Nodes[0].Name != "a" || objects.Nodes[1].Name != "b" ||
			len(objects.Warnings) > 0 {
			t.Errorf("%s: %+v, %v", name, objects, err)
		}
	}
}

// TestReadHubKinds checks the kinds of a hub: other kinds are ignored, wrong versions and values are errors.
func TestReadHubKinds(t *testing.T) {
	const placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p, namespace: shop}\n"
	const other = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	hub, err := ReadHub([]string{"-"}, strings.NewReader(placement+"spec: {}\n"+other))
	const warnings = "ignored: 1 Secret; found no ManagedClusters in the input (export the hub with " +
		"kubectl get managedclusters,managedclustersets,managedclustersetbindings,placements -A -o yaml)"
	if err != nil || len(hub.Placements) != 1 || strings.Join(hub.Warnings, "; ") != warnings {
		t.Errorf("%+v, %v", hub, err)
	}
	for content, want := range map[string]string{
		other[4:]: "found no placements in the input: must have at least one; ignored: 1 Secret",
		strings.Replace(placement, "v1beta1", "v1", 1): `standard input, document 1: Placement shop/p: apiVersion: invalid value ` +
			`"cluster.open-cluster-management.io/v1": must be cluster.open-cluster-management.io/v1beta1 or cluster.open-cluster-management.io/v1alpha1`,
		placement + "spec: {numberOfClusters: many}\n": `standard input, document 1: Placement shop/p: spec.numberOfClusters: ` +
			`json: cannot unmarshal string into Go struct field PlacementSpec.spec.numberOfClusters of type int32`,
		"apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c}\nstatus: {allocatable: {cpu: x}}\n": "standard " +
			`input, document 1: ManagedCluster c: status.allocatable.cpu: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
	} {
		if _, err := ReadHub([]string{"-"}, strings.NewReader(content)); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// FuzzRead checks that documents with nodes, or with placements, are read, that all other documents cause an
// error, and that none takes long.
func FuzzRead(f *testing.F) {
	f.Add("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{resources: {limits: {cpu: x}}}]}}")
	f.Add("apiVersion: v1\nkind: Pod\nmetadata: {name: '{{ .x }}'}\n")
	f.Add("{\"kind\": \"List\", \"apiVersion\": \"v1\"}{}")
	f.Add(node + "---\n" + pod("p", "node-1"))
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{}]}`)
	f.Add("a: &a [*a]")
	f.Add("apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: a}\n")
	f.Add("kind: List\nitems: [1, null, {}]")
	f.Add("apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: '1e-2147483647', memory: \"1e-1\\x30000000\"}}")
	f.Fuzz(func(t *testing.T, content string) {
		start := time.Now()
		objects, err := Read([]string{"-"}, strings.NewReader(content))
		if (err == nil) != (objects != nil && len(objects.Nodes) > 0) {
			t.Errorf("objects %+v, error %v: want nodes or an error", objects, err)
		}
		hub, err := ReadHub([]string{"-"}, strings.NewReader(content))
		if (err == nil) != (hub != nil && len(hub.Placements) > 0) {
			t.Errorf("hub %+v, error %v: want placements or an error", hub, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

// FuzzEachObject checks that every object has fields, or that there is an error.
func FuzzEachObject(f *testing.F) {
	f.Add("kind: PodList\nitems: [{metadata: {name: a}}]")
	f.Add(`{"kind":"List","items":[1]}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, content string) {
		err := EachObject(Files([]string{"-"}, strings.NewReader(content)), func(_, kind string, object map[string]any) error {
			if kind == "" || object["kind"] != kind {
				t.Errorf("kind %q, object %v", kind, object)
			}
			return nil
		})
		if err != nil && err.Error() == "" {
			t.Error("an error without a message")
		}
	})
}
