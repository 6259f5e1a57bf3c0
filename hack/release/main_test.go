package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// TestRelease makes the release of one program for one platform, twice: the archives and bills of materials are identical, and
// the program knows its version.
func TestRelease(t *testing.T) {
	t.Chdir("../..")
	host := runtime.GOOS + "/" + runtime.GOARCH
	var archives, bills [2][]byte
	for i := range archives {
		folder := t.TempDir()
		arguments := []string{
			"-version=v1.2.3", "-commit=1234567", "-date=2026-11-21", "-programs=load-watcher", "-platforms=" + host, folder,
		}
		if err := run(t.Context(), append([]string{"archives"}, arguments...), io.Discard); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, fmt.Sprintf("load-watcher_v1.2.3_%s_%s", runtime.GOOS, runtime.GOARCH))
		var err error
		if archives[i], err = os.ReadFile(name + ".tar.gz"); err != nil {
			t.Fatal(err)
		}
		if bills[i], err = os.ReadFile(name + ".spdx.json"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) || !bytes.Equal(bills[0], bills[1]) {
		t.Error("two archives or bills of the same program differ")
	}
	files := unpack(t, archives[0])
	if !strings.Contains(files["LICENSES"], "==== Go: LICENSE") || files["LICENSE"] == "" {
		t.Error("the archive lacks license texts")
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte(files["load-watcher"]), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := output(t.Context(), nil, program, "--version")
	if want := "load-watcher v1.2.3 (commit 1234567, 2026-11-21)\n"; err != nil || string(out) != want {
		t.Errorf("says %q, %v; want %q", out, err, want)
	}
	if sum, err := checksum(program); err != nil || !bytes.Contains(bills[0], []byte(sum)) {
		t.Errorf("the bill lacks the checksum of the program, %s, %v", sum, err)
	}
}

func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime != time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).Local() {
			t.Errorf("%s has the time %s", header.Name, header.ModTime)
		}
		files[header.Name] = string(content)
	}
}

// krewPlugin has the fields of a manifest that krew knows, and no others.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version, Homepage, ShortDescription, Description string
		Platforms                                        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI, SHA256, Bin string
			Files            []struct{ From, To string }
		} `json:"platforms"`
	} `json:"spec"`
}

// TestFinish checks that the files of the chart have the time of the release, the manifest by the rules of krew's index (https
// URIs, checksums of the archives, a program among the files, a semantic version, a short description of at most 50
// characters), and that the checksums are those of all files.
func TestFinish(t *testing.T) {
	t.Chdir("../..")
	folder := t.TempDir()
	for p := range strings.SplitSeq(allPlatforms, ",") {
		r := release{version: "v1.2.3"}
		system, architecture, _ := strings.Cut(p, "/")
		if err := os.WriteFile(filepath.Join(folder, r.archive(cli, platform{system, architecture})), []byte(p), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeChart(t, folder, "plimsoll-1.2.3.tgz")
	arguments := []string{"finish", "-version=v1.2.3", "-commit=1234567", "-date=2026-11-21", "-programs=plimsoll", folder}
	if err := run(t.Context(), arguments, io.Discard); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, krewFile))
	if err != nil {
		t.Fatal(err)
	}
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict(raw, &plugin); err != nil {
		t.Fatal(err)
	}
	spec := plugin.Spec
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != cli ||
		spec.Version != "v1.2.3" || spec.ShortDescription == "" || len(spec.ShortDescription) > 50 ||
		strings.Contains(spec.ShortDescription, "\n") || spec.Homepage == "" || spec.Description == "" {
		t.Errorf("%s", raw)
	}
	repacked, err := os.ReadFile(filepath.Join(folder, "plimsoll-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if files := unpack(t, repacked); files["plimsoll/Chart.yaml"] != "name: plimsoll\n" {
		t.Errorf("the chart has %v", files)
	}
	sums, err := os.ReadFile(filepath.Join(folder, checksums))
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Platforms) != 5 || strings.Count(string(sums), "\n") != 7 {
		t.Errorf("%d platforms, checksums\n%s", len(spec.Platforms), sums)
	}
	for _, p := range spec.Platforms {
		name := filepath.Base(p.URI)
		if !strings.HasPrefix(p.URI, download+"v1.2.3/") || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.SHA256) ||
			!strings.Contains(string(sums), p.SHA256+"  "+name+"\n") || p.Files[0].From != p.Bin ||
			!strings.Contains(name, p.Selector.MatchLabels["os"]+"_"+p.Selector.MatchLabels["arch"]) || len(p.Selector.MatchLabels) != 2 {
			t.Errorf("%+v", p)
		}
		for _, f := range p.Files {
			if !slices.Contains([]string{"LICENSE", "LICENSES", p.Bin}, f.From) || f.To != "." {
				t.Errorf("%s: file %+v", name, f)
			}
		}
	}
}

func TestInvalidFlags(t *testing.T) {
	t.Chdir("../..")
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"a commit":         {[]string{"finish", "-version=697d0e8", "x"}, `-version: invalid value "697d0e8": must be a semantic version such as v0.1.0`},
		"no date":          {[]string{"finish", "-version=v1.2.3", "x"}, `-date: invalid value "": must be a day such as 2026-11-21`},
		"unknown program":  {[]string{"finish", "-version=v1.2.3", "-date=2026-11-21", "-programs=x", "x"}, "must be a list of load-watcher, plimsoll, "},
		"unknown platform": {[]string{"finish", "-version=v1.2.3", "-date=2026-11-21", "-platforms=linux", "x"}, "must be a list such as"},
		"no command":       {nil, "usage: release archives|finish [flags] FOLDER"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), tc.arguments, io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
