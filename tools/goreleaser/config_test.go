// Package goreleaser tests the configuration of releases, .goreleaser.yaml.
package goreleaser

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// TestCheck runs goreleaser check.
func TestCheck(t *testing.T) {
	check := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/goreleaser/go.mod", "goreleaser", "check")
	check.Dir = "../.."
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPrograms expects that every program of cmd is built and in an archive, and that the images are those of the Makefile,
// pushed to the registry that the chart names.
func TestPrograms(t *testing.T) {
	c, err := config.Load("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../../cmd")
	if err != nil {
		t.Fatal(err)
	}
	var programs, builds, archived, images []string
	for _, entry := range entries {
		programs = append(programs, entry.Name())
	}
	for _, build := range c.Builds {
		builds = append(builds, build.ID)
	}
	for _, archive := range c.Archives {
		archived = append(archived, archive.IDs...)
	}
	for _, image := range c.Kos {
		images = append(images, image.Build)
	}
	slices.Sort(builds)
	slices.Sort(archived)
	if !slices.Equal(builds, programs) || !slices.Equal(archived, programs) {
		t.Errorf("builds %v, archives of %v, want %v", builds, archived, programs)
	}
	makefile := read(t, "Makefile")
	if want := "IMAGES   := " + strings.Join(images, " ") + "\n"; !strings.Contains(makefile, want) {
		t.Errorf("the Makefile lacks %s", want)
	}
	registry := regexp.MustCompile(`(?m)^REGISTRY \?= (.*)$`).FindStringSubmatch(makefile)[1]
	for file, want := range map[string]string{
		"charts/plimsoll/values.yaml":    "\n  registry: " + registry + "\n",
		"docs/install.md":                "helm install plimsoll oci://" + registry + "/charts/plimsoll --version ${VERSION#v} ",
		".github/workflows/release.yaml": "REGISTRY: ghcr.io/${{ github.repository_owner }}",
	} {
		if !strings.Contains(read(t, file), want) {
			t.Errorf("%s lacks %s", file, want)
		}
	}
	// The names of files as documented and as the action for pull requests downloads them.
	for file, want := range map[string]string{
		"docs/install.md":                    "plimsoll_${VERSION}_linux_amd64.tar.gz",
		".github/actions/compare/compare.sh": "archive=plimsoll_${VERSION}_${system}_$architecture.tar.gz",
	} {
		if name := c.Archives[0].NameTemplate; name != "plimsoll_v{{ .Version }}_{{ .Os }}_{{ .Arch }}" ||
			!strings.Contains(read(t, file), want) {
			t.Errorf("archives are named %s, %s lacks %s", name, file, want)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
