package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
)

// TestKrew runs the documented commands with krew: it installs the plugin from the archive for this platform by the
// manifest of a release, which then runs, and uninstalls it. The manifest is read from a server, and the archive from
// the folder of the release.
func TestKrew(t *testing.T) {
	t.Chdir("../..")
	folder := t.TempDir()
	r := release{folder: folder, version: "v0.1.0", day: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), progress: io.Discard}
	host := platform{runtime.GOOS, runtime.GOARCH}
	stub := filepath.Join(t.TempDir(), r.binary(cli, host))
	if err := os.WriteFile(stub, []byte("#!/bin/sh\necho plimsoll \"$@\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for p := range strings.SplitSeq(allPlatforms, ",") {
		system, architecture, _ := strings.Cut(p, "/")
		if err := r.writeArchive(cli, platform{system, architecture}, stub, []byte("licenses")); err != nil {
			t.Fatal(err)
		}
	}
	writeChart(t, folder, "plimsoll-0.1.0.tgz")
	if err := run(
		t.Context(),
		[]string{"finish", "-version=v0.1.0", "-commit=1234567", "-date=2026-11-21", folder},
		io.Discard,
	); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.StripPrefix("/v0.1.0/", http.FileServer(http.Dir(folder))))
	defer server.Close()

	krew, installed := newKrew(t)
	commands, err := doccheck.CommandsOf(".", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, command := range commands {
		if command.Words[1] != "krew" {
			continue
		}
		arguments := command.Words[2:]
		verbs = append(verbs, arguments[0])
		if arguments[0] == "install" {
			arguments = []string{
				"install", strings.Replace(arguments[1], strings.TrimSuffix(download, "/"), server.URL, 1), "--no-update-index",
				"--archive=" + filepath.Join(folder, r.archive(cli, host)),
			}
			if !strings.Contains(arguments[1], server.URL) {
				t.Errorf("%s does not install from %s", command, download)
			}
		}
		if err := krew(arguments...); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		out, err := exec.CommandContext(t.Context(), installed, "version").CombinedOutput()
		if isInstalled := arguments[0] == "install"; isInstalled != (string(out) == "plimsoll version\n") {
			t.Errorf("after %s, kubectl-plimsoll version prints %q, %v", command, out, err)
		}
	}
	if got := strings.Join(verbs, " "); got != "install uninstall" {
		t.Errorf("the documentation has commands of krew: %q, want install and uninstall", got)
	}
}

// newKrew builds krew and returns a function that runs it in a folder of its own, and the path of the plugin after its
// installation.
func newKrew(t *testing.T) (krew func(arguments ...string) error, plugin string) {
	t.Helper()
	program, err := output(t.Context(), nil, "go", "tool", "-modfile="+filepath.Join("tools", "krew", "go.mod"), "-n", "krew")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	// krew reads its index only to install plugins by name, but expects a clone of it.
	if err := os.MkdirAll(filepath.Join(root, "index", "default", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(arguments ...string) error {
		command := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), arguments...)
		command.Env = append(os.Environ(), "KREW_ROOT="+root)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("krew %v: %w\n%s", arguments, err, out)
		}
		return nil
	}, filepath.Join(root, "bin", "kubectl-plimsoll")
}

// writeChart writes the archive of a chart with one file, whose time is that of now.
func writeChart(t *testing.T, folder, name string) {
	t.Helper()
	var chart bytes.Buffer
	if err := pack(&chart, platform{}, []file{{"plimsoll/Chart.yaml", 0o600, []byte("name: plimsoll\n")}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), chart.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
