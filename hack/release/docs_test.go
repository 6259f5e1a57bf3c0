package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedFiles expects that docs/install.md names the files of a release as they are named, with all programs.
func TestDocumentedFiles(t *testing.T) {
	t.Chdir("../..")
	page := readText(t, "docs/install.md")
	r := release{version: "v0.1.0"}
	for _, name := range []string{
		r.archive(cli, platform{"linux", "amd64"}), krewFile, checksums, "plimsoll-0.1.0.tgz", "plimsoll-scheduler_v0.1.0_image.tar",
		strings.TrimSuffix(download, "/") + "/v0.1.0\n",
	} {
		if !strings.Contains(page, name) {
			t.Errorf("docs/install.md does not name %s", name)
		}
	}
	programs, err := selectPrograms("")
	if err != nil {
		t.Fatal(err)
	}
	_, sentence, _ := strings.Cut(page, "Archives are named")
	sentence, _, _ = strings.Cut(sentence, "\n\n")
	for _, name := range programs {
		if !strings.Contains(sentence, "`"+name+"`") {
			t.Errorf("docs/install.md does not name the archives of %s", name)
		}
	}
	for p := range strings.SplitSeq(allPlatforms, ",") {
		if system, architecture, _ := strings.Cut(p, "/"); !strings.Contains(sentence, "`"+system+"`") ||
			!strings.Contains(sentence, "`"+architecture+"`") {
			t.Errorf("docs/install.md does not name the archives for %s", p)
		}
	}
}

// TestRegistry expects that the images and the chart of a release are pushed to where the chart and docs/install.md expect them.
func TestRegistry(t *testing.T) {
	t.Chdir("../..")
	found := regexp.MustCompile(`(?m)^REGISTRY \?= (.*)$`).FindStringSubmatch(readText(t, "Makefile"))
	if found == nil {
		t.Fatal("the Makefile has no REGISTRY")
	}
	for file, want := range map[string]string{
		"charts/plimsoll/values.yaml": "\n  registry: " + found[1] + "\n",
		"docs/install.md":             "helm install plimsoll oci://" + found[1] + "/charts/plimsoll --version 0.1.0 ",
		".ci/release":                 `"oci://$REGISTRY/charts"`,
	} {
		if !strings.Contains(readText(t, file), want) {
			t.Errorf("%s lacks %s", file, want)
		}
	}
	// The workflow pushes to the registry of the repository's owner.
	if registry, owner := found[1], "ghcr.io/"+strings.Split(download, "/")[3]; registry != owner ||
		!strings.Contains(readText(t, ".github/workflows/release.yaml"), "REGISTRY: ghcr.io/${{ github.repository_owner }}") {
		t.Errorf("the registry is %s, want %s", registry, owner)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
