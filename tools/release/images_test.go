// Package release tests what is given out, with the tools that make it.
package release

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// ko makes an image of the smallest program, by the project's .ko.yaml, on an empty
// base image: what is in it is one static program that knows its version.
func TestKo(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	base, err := mutate.ConfigFile(
		empty.Image,
		&v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: v1.Config{User: "65532:65532"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	reference := func(path string) name.Reference {
		r, err := name.ParseReference(host + path)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := remote.Write(reference("/scratch:latest"), base); err != nil {
		t.Fatal(err)
	}
	licenses := exec.CommandContext(t.Context(), "make", "licenses", "IMAGES=load-watcher")
	licenses.Dir = "../.."
	if out, err := licenses.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build := exec.CommandContext(
		t.Context(),
		"go",
		"tool",
		"-modfile=tools/release/go.mod",
		"ko",
		"build",
		"--base-import-paths",
		"--platform=linux/"+runtime.GOARCH,
		"--tags=v1.2.3",
		"./cmd/load-watcher",
	)
	build.Dir = "../.."
	build.Env = append(
		os.Environ(),
		"KO_DOCKER_REPO="+host+"/plimsoll",
		"KO_DEFAULTBASEIMAGE="+host+"/scratch:latest",
		"VERSION=v1.2.3",
		"COMMIT=1234567",
		"DATE=2026-11-21",
	)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image, err := remote.Image(reference("/plimsoll/load-watcher:v1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || len(config.Config.Entrypoint) != 1 {
		t.Errorf("user %q, entry point %q", config.Config.User, config.Config.Entrypoint)
	}
	program := extract(t, image, config.Config.Entrypoint[0])
	isStatic(t, program)
	if texts, err := os.ReadFile(
		extract(t, image, "/var/run/ko/LICENSES"),
	); err != nil ||
		!bytes.Contains(texts, []byte("==== Go: LICENSE")) {
		t.Errorf("%v, license texts %.200s", err, texts)
	}
	out, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if want := "load-watcher v1.2.3 (commit 1234567, 2026-11-21)\n"; err != nil || string(out) != want {
		t.Errorf("says %q, %v; want %q", out, err, want)
	}
}

// extract writes the file at a path in an image to a file of its own, and returns
// where that is.
func extract(t *testing.T, image v1.Image, path string) string {
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
		file := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(file, raw, 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

// isStatic: a program that runs on an empty image needs no interpreter and no
// libraries; and it does not say where it was built.
func isStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("it wants an interpreter")
		}
	}
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it wants libraries %v, %v", libraries, err)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte(folder)) {
		t.Errorf("it has the folder %s in it", folder)
	}
}

// Whoever builds with Docker gets the same: the programs that have images are the
// same in both, and the one stage that is shipped is empty and not root's.
func TestDockerfile(t *testing.T) {
	raw, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, shipped, found := strings.Cut(string(raw), "\nFROM scratch\n")
	if !found || strings.Contains(shipped, "\nFROM ") || !strings.Contains(shipped, "\nUSER 65532:65532\n") ||
		!strings.Contains(
			shipped,
			"ca-certificates.crt /etc/ssl/certs/",
		) || !strings.Contains(shipped, "\nCOPY --from=build /LICENSES /LICENSES\n") {
		t.Errorf("ships\n%s", shipped)
	}
}
