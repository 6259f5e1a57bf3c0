//go:build foreign

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// repository is the address of the files of the project.
const repository = "https://github.com/plimsoll-k8s/plimsoll/blob/main/"

// TestArtifactHub checks the parts of the chart that Artifact Hub shows: its README, the CRD that it installs by default and an
// example of it, and links to files that exist.
func TestArtifactHub(t *testing.T) {
	var chart struct {
		Icon        string            `json:"icon"`
		Annotations map[string]string `json:"annotations"`
	}
	readYAML(t, filepath.Join(tool.Chart, "Chart.yaml"), &chart)

	var definition apiextensionsv1.CustomResourceDefinition
	readYAML(t, filepath.Join(project, "config/crd/plimsoll.dev_resourceslacks.yaml"), &definition)
	var crds []struct{ Kind, Version, Name, DisplayName, Description string }
	must.Succeed(t, yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/crds"]), &crds))
	if len(crds) != 1 || crds[0].Kind != definition.Spec.Names.Kind || crds[0].Name != definition.Name ||
		crds[0].Version != definition.Spec.Versions[0].Name || crds[0].DisplayName == "" || crds[0].Description == "" {
		t.Errorf("artifacthub.io/crds: %+v", crds)
	}

	var example map[string]any
	readYAML(t, filepath.Join(project, "examples/slack/policy.yaml"), &example)
	var examples []map[string]any
	must.Succeed(t, yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/crdsExamples"]), &examples))
	if diff := cmp.Diff([]map[string]any{example}, examples); diff != "" {
		t.Errorf("artifacthub.io/crdsExamples: -examples/slack/policy.yaml +got\n%s", diff)
	}

	readme, err := os.ReadFile(filepath.Join(tool.Chart, "README.md"))
	must.Succeed(t, err)
	_, block, _ := strings.Cut(string(readme), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	var shown map[string]any
	must.Succeed(t, yaml.Unmarshal([]byte(block), &shown))
	if diff := cmp.Diff(example, shown); diff != "" {
		t.Errorf("README.md: -examples/slack/policy.yaml +got\n%s", diff)
	}

	var links []struct{ Name, URL string }
	must.Succeed(t, yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/links"]), &links))
	files := []string{strings.TrimPrefix(chart.Icon, "https://raw.githubusercontent.com/plimsoll-k8s/plimsoll/main/")}
	for _, link := range links {
		files = append(files, strings.TrimPrefix(link.URL, repository))
	}
	for _, text := range strings.Split(string(readme), "]("+repository)[1:] {
		file, _, _ := strings.Cut(text, ")")
		files = append(files, file)
	}
	if len(files) < 7 {
		t.Errorf("links to %v", files)
	}
	for _, file := range files {
		file, _, _ = strings.Cut(file, "#")
		if _, err := os.Stat(filepath.Join(project, file)); err != nil {
			t.Errorf("a link to a file that does not exist: %v", err)
		}
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	must.Succeed(t, err)
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
