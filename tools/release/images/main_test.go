package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const sources = "../../.."

// TestImages writes the image of the smallest program to an archive and pushes it to a registry, as make release and
// make ko do. Both have the same digest, and the image has one static program that knows its version, the license texts
// and certificates.
func TestImages(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/plimsoll"
	folder := t.TempDir()
	makeImages(t, "ko", repository)
	makeImages(t, "image-archives", repository, "RELEASE="+folder)

	reference, err := name.ParseReference(repository + "/load-watcher:v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Get(reference)
	if err != nil {
		t.Fatal(err)
	}
	unpacked := unpack(t, filepath.Join(folder, "load-watcher_v1.2.3_image.tar"))
	index, err := unpacked.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Digest != pushed.Digest ||
		index.Manifests[0].Annotations["io.containerd.image.name"] != reference.Name() {
		t.Fatalf("the archive has %+v, pushed was %s", index.Manifests, pushed.Digest)
	}
	image, err := unpacked.Image(pushed.Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil || manifest.Config.MediaType != types.OCIConfigJSON || manifest.MediaType != types.OCIManifestSchema1 {
		t.Errorf("%+v, %v: want the types of OCI", manifest, err)
	}
	if config.Config.User != "65532:65532" || len(config.Config.Entrypoint) != 1 || config.Config.Labels["org.opencontainers.image.source"] != source {
		t.Errorf("%+v", config.Config)
	}
	if texts := extract(t, image, "/var/run/ko/LICENSES"); !bytes.Contains(texts, []byte("==== Go: LICENSE")) {
		t.Errorf("license texts %.200s", texts)
	}
	if block, _ := pem.Decode(extract(t, image, "/"+certificates)); block == nil {
		t.Error("no certificates")
	}
	program := filepath.Join(t.TempDir(), "load-watcher")
	if err := os.WriteFile(program, extract(t, image, config.Config.Entrypoint[0]), 0o700); err != nil {
		t.Fatal(err)
	}
	expectStatic(t, program)
	out, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if want := "load-watcher v1.2.3 (commit 1234567, 2026-11-21)\n"; err != nil || string(out) != want {
		t.Errorf("prints %q, %v; want %q", out, err, want)
	}
}

// makeImages runs a target of the Makefile for the image of one program.
func makeImages(t *testing.T, target, repository string, variables ...string) {
	t.Helper()
	arguments := append([]string{
		target, "IMAGES=load-watcher", "REGISTRY=" + repository, "PLATFORMS=linux/" + runtime.GOARCH,
		"VERSION=v1.2.3", "COMMIT=1234567", "DATE=2026-11-21",
	}, variables...)
	build := exec.CommandContext(t.Context(), "make", arguments...)
	build.Dir = sources
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// unpack unpacks an OCI archive and returns its index.
func unpack(t *testing.T, file string) v1.ImageIndex {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", file, "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// extract returns the content of a file in an image.
func extract(t *testing.T, image v1.Image, path string) []byte {
	t.Helper()
	contents := mutate.Extract(image)
	defer contents.Close()
	for archive := tar.NewReader(contents); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no %s", path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if "/"+strings.TrimPrefix(header.Name, "/") != path {
			continue
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
}

// expectStatic expects that a program needs no interpreter and no libraries, and does not contain the folder in which it
// was built.
func expectStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the program has an interpreter")
		}
	}
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the program has libraries %v, %v", libraries, err)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(sources)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte(folder)) {
		t.Errorf("the program contains the folder %s", folder)
	}
}

// TestBaseImages checks the base image of two platforms: its contents are the same, and do not change between two calls.
func TestBaseImages(t *testing.T) {
	day := v1.Time{Time: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
	var digests []string
	for range 2 {
		index, err := baseImages([]string{"linux/amd64", "linux/arm64"}, day)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, string(text))
		var platforms []string
		for _, m := range manifest.Manifests {
			platforms = append(platforms, m.Platform.String())
		}
		if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("platforms %v", platforms)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("two calls return\n%s\n%s", digests[0], digests[1])
	}
}

func TestInvalidFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"no date":     {[]string{"-registry=r.io/p", "-version=v1", "x"}, `-date: invalid value "": must be a day such as 2026-11-21`},
		"platform":    {[]string{"-platforms=linux/amd64,darwin/arm64"}, "-platforms: invalid value"},
		"no registry": {[]string{"-date=2026-11-21", "-version=", "-registry=r.io/p", "x"}, "-registry and -version: "},
		"no programs": {[]string{"-date=2026-11-21", "-version=v1", "-registry=r.io/p"}, "no programs: must be names of folders in cmd"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), tc.arguments, io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
