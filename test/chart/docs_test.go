//go:build foreign

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

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// document compares a table between two marks in docs/security.md with the expected one. With -update it
// writes the table.
func document(t *testing.T, mark, want string) {
	t.Helper()
	file := filepath.Join(project, "docs", "security.md")
	raw, err := os.ReadFile(file)
	must.Succeed(t, err)
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
	must.Succeed(t, os.WriteFile(file, []byte(before+open+want+end+after), 0o600))
}

// TestValuesHaveComments expects a comment in values.yaml on each setting of the other components, except
// settings that the scheduler has, too.
func TestValuesHaveComments(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(tool.Chart, "values.yaml"))
	must.Succeed(t, err)
	var file yaml.Node
	must.Succeed(t, yaml.Unmarshal(raw, &file))
	common := map[string]bool{}
	var check func(path string, node *yaml.Node)
	check = func(path string, node *yaml.Node) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			name := strings.TrimPrefix(path+"."+key.Value, ".")
			if value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 {
				check(name, value)
				continue
			}
			component, setting, _ := strings.Cut(name, ".")
			if component == "scheduler" {
				common[setting] = true
			}
			isComponent := slices.Contains([]string{"controller", "loadWatcher", "agent", "shadow"}, component)
			if isComponent && !common[setting] && key.HeadComment == "" {
				t.Errorf("values.yaml has no comment on %s", name)
			}
		}
	}
	check("", file.Content[0])
}

// TestDocumentedRights expects a table of the rendered permissions with all components enabled and the
// default load sources.
func TestDocumentedRights(t *testing.T) {
	objects := render(
		t,
		"controller: {controllers: [slack, placement], extraCapacityMinRate: 10%, placeholderNamespace: placeholders}\nloadWatcher: {enabled: true}\nagent: {enabled: true, clusterName: c, hub: {secretName: s}}\nshadow: {enabled: true}\n",
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
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
			roles[object.GetKind()+role.Name] = role.Rules
		case "ClusterRoleBinding", "RoleBinding":
			var bound rbacv1.RoleBinding
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &bound))
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
				bindings = append(bindings,
					binding{strings.TrimPrefix(subject.Name, "plimsoll-"), where, bound.RoleRef.Kind + bound.RoleRef.Name})
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
	document(t, "rights", "| component | where | may |\n|---|---|---|\n"+strings.Join(slices.Sorted(maps.Keys(rows)), ""))
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
