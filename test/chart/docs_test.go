package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// document compares a table between two marks in a page with the expected one. With -update it writes the
// table.
func document(t *testing.T, page, mark, want string) {
	t.Helper()
	file := filepath.Join(project, "docs", page)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open, end := "<!-- "+mark+" -->\n", "<!-- end of "+mark+" -->"
	before, rest, opened := strings.Cut(string(raw), open)
	found, after, ended := strings.Cut(rest, end)
	if !opened || !ended {
		t.Fatalf("%s: %s or %s is missing", file, open, end)
	}
	if found == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not up to date (go test ./test/chart -update writes it); want\n%s", file, want)
	}
	if err := os.WriteFile(file, []byte(before+open+want+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// setting is a value of the chart: its path, its default and its comment in values.yaml.
type setting struct{ path, value, text string }

// settings returns the values under a node in the order of the file. A value in flow style is one
// setting.
func settings(t *testing.T, path string, node *yaml.Node) (all []setting) {
	t.Helper()
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		if value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 {
			all = append(all, settings(t, name, value)...)
			continue
		}
		value.Style = yaml.FlowStyle
		if value.Kind == yaml.ScalarNode {
			value.Style = 0
		}
		value.HeadComment, value.LineComment = "", ""
		shown, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(strings.ReplaceAll(key.HeadComment, "# ", ""), "\n", " ")
		all = append(all, setting{name, strings.TrimSpace(string(shown)), text})
	}
	return all
}

// TestDocumentedValues expects a table of all values. Settings that all components have are listed for
// the scheduler, and for other components if their defaults differ.
func TestDocumentedValues(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(tool.Chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	all := settings(t, "", file.Content[0])
	common := map[string]string{}
	for _, s := range all {
		if name, ok := strings.CutPrefix(s.path, "scheduler."); ok {
			common[name] = s.value
		}
	}
	var table strings.Builder
	table.WriteString("| value | default | |\n|---|---|---|\n")
	for _, s := range all {
		component, name, _ := strings.Cut(s.path, ".")
		value, isCommon := common[name]
		if slices.Contains([]string{"controller", "loadWatcher", "agent"}, component) {
			if isCommon && value == s.value {
				continue
			}
			if !isCommon && s.text == "" {
				t.Errorf("values.yaml has no comment on %s", s.path)
			}
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", s.path, s.value, s.text)
	}
	document(t, "install.md", "values", table.String())
}

// TestDocumentedRights expects a table of the rendered permissions with all components enabled and the
// default load sources.
func TestDocumentedRights(t *testing.T) {
	objects := render(
		t,
		"controller: {controllers: [slack, placement], extraCapacityMinRate: 10%, placeholderNamespace: placeholders}\nloadWatcher: {enabled: true}\nagent: {enabled: true, clusterName: c, hub: {secretName: s}}\n",
	)
	roles := map[string][]rbacv1.PolicyRule{}
	type binding struct {
		subject, where, role string
	}
	var bindings []binding
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRole", "Role":
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				t.Fatal(err)
			}
			roles[object.GetKind()+role.Name] = role.Rules
		case "ClusterRoleBinding", "RoleBinding":
			var bound rbacv1.RoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &bound); err != nil {
				t.Fatal(err)
			}
			where := "cluster"
			switch bound.Namespace {
			case "":
			case "plimsoll-system":
				where = "the release's namespace"
			case "placeholders":
				where = "`controller.placeholderNamespace`, if set"
			default:
				where = bound.Namespace
			}
			for _, subject := range bound.Subjects {
				bindings = append(
					bindings,
					binding{strings.TrimPrefix(subject.Name, "plimsoll-"), where, bound.RoleRef.Kind + bound.RoleRef.Name},
				)
			}
		}
	}
	rows := map[string]bool{}
	for _, b := range bindings {
		rules, isRendered := roles[b.role]
		if !isRendered {
			rows[fmt.Sprintf("| %s | %s | the rules of the built-in role `%s` |\n", b.subject, b.where, strings.TrimPrefix(strings.TrimPrefix(b.role, "Cluster"), "Role"))] = true
		}
		for _, rule := range rules {
			rows[fmt.Sprintf("| %s | %s | %s %s |\n", b.subject, b.where, strings.Join(rule.Verbs, ", "), resourcesOf(rule))] = true
		}
	}
	document(t, "security.md", "rights", "| component | where | may |\n|---|---|---|\n"+strings.Join(slices.Sorted(maps.Keys(rows)), ""))
}

// resourcesOf returns the resources of a rule, such as `deployments.apps`, and their names.
func resourcesOf(rule rbacv1.PolicyRule) string {
	var out []string
	for _, resource := range rule.Resources {
		for _, group := range rule.APIGroups {
			out = append(out, "`"+strings.TrimSuffix(resource+"."+group, ".")+"`")
		}
	}
	if len(rule.ResourceNames) > 0 {
		out = append(out, "named `"+strings.Join(rule.ResourceNames, "`, `")+"`")
	}
	return strings.Join(out, " ")
}
