package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const node = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n"

// pod returns the manifest of a pod.
func pod(name, nodeName string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {nodeName: \"" + nodeName + "\", containers: [{name: c}]}\n"
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := Read([]string{dir, "-"}, strings.NewReader(pod("q", "")))
	if err != nil || len(objects.Nodes) != 1 || len(objects.Pending) != 2 {
		t.Errorf("%+v, %v", objects, err)
	}
}

func TestReadErrors(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"ignored kind": {
			node + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}", "document 2: found a ConfigMap: must be one of Node, Pod",
		},
		"unknown kind": {"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: c}", `document 1: no kind "Thing" is registered`},
		"no kind":      {"metadata: {name: c}", "want one of Node, Pod"},
		"not YAML":     {"a: [", "document 1: "},
		"wrong type":   {"apiVersion: v1\nkind: Node\nmetadata: {name: [1]}", "document 1: "},
		"bad quantity": {"apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: many}}", "document 1: "},
		"no name":      {"apiVersion: v1\nkind: Node\nmetadata: {}", "document 1: a node without metadata.name"},
		"duplicate":    {node + "---\n" + node, "document 2: duplicate node node-1, first defined in "},
		"no nodes":     {pod("p", ""), "found no nodes"},
		"item of a list": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}",
			"document 1: item 1: found a Secret",
		},
		"an empty object": {"{}", "want one of Node, Pod"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := write(t, "x.yaml", tc.content)
			_, err := Read([]string{path}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if err != nil && name != "no nodes" && !strings.HasPrefix(err.Error(), path) {
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

func FuzzRead(f *testing.F) {
	f.Add(node + "---\n" + pod("p", "node-1"))
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{}]}`)
	f.Add("a: &a [*a]")
	f.Fuzz(func(_ *testing.T, content string) {
		_, _ = Read([]string{"-"}, strings.NewReader(content))
	})
}
