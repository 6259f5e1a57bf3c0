package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// installCRDs installs the CRDs in files, and waits until they are served.
func installCRDs(t *testing.T, config *rest.Config, files ...string) {
	t.Helper()
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		eventually(t, crd.Name+" is not served", &output{}, func(ctx context.Context) (bool, error) {
			there, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, crd.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, condition := range there.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
	}
}

// ourCRDs are the files of our own CRDs.
func ourCRDs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// karpenterFolder returns the folder of Karpenter's module, of the version that
// the module beside this one names.
func karpenterFolder(t *testing.T) string {
	t.Helper()
	return moduleFolder(t, "../karpenter", "sigs.k8s.io/karpenter")
}

// moduleFolder returns the folder of a module, of the version that the module in
// a folder beside names.
func moduleFolder(t *testing.T, beside, module string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", module)
	list.Dir = beside
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
