//go:build foreign

package chart

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var (
	pushed = regexp.MustCompile(`KO_DOCKER_REPO=(\S+)[^\n]*\n[^\n]* --tags=(\S+) (.*)`)
	used   = regexp.MustCompile(`(?m)^ *(?:- )?image: "?([^"\n]+)"?$`)
)

// TestInstalledImagesArePushed pastes the documented blocks that build images and install the chart into bash, with make as
// a dry run and helm install as helm template: the pods run images that make pushes, also if the clone has local changes.
func TestInstalledImagesArePushed(t *testing.T) {
	pages, err := doccheck.Pages(project)
	must.Succeed(t, err)
	blocks := 0
	for _, page := range pages {
		for _, block := range page.Blocks() {
			if !strings.Contains(block.Text, "make images ") || !strings.Contains(block.Text, "helm ") {
				continue
			}
			blocks++
			out := paste(t, block.Text)
			found := pushed.FindStringSubmatch(out)
			if found == nil {
				t.Fatalf("%s:%d: make pushes no images:\n%s", block.Page, block.Line, out)
			}
			var images []string
			for program := range strings.FieldsSeq(found[3]) {
				images = append(images, found[1]+"/"+path.Base(program)+":"+found[2])
			}
			containers := used.FindAllStringSubmatch(out, -1)
			for _, image := range containers {
				if !slices.Contains(images, image[1]) {
					t.Errorf("%s:%d: a pod runs the image %s, make pushes %v", block.Page, block.Line, image[1], images)
				}
			}
			if len(containers) < 2 {
				t.Errorf("%s:%d: %d containers, want those of scheduler and controller:\n%s", block.Page, block.Line, len(containers), out)
			}
		}
	}
	if blocks < 2 {
		t.Errorf("found %d blocks, want those of the README and docs/install.md", blocks)
	}
}

// paste runs a block in the folder of the project and returns its output. make prints its commands, and helm the objects
// that it would create; git describes a clone with local changes.
func paste(t *testing.T, block string) string {
	t.Helper()
	programs := t.TempDir()
	for name, script := range map[string]string{
		"make": `exec "$MAKE_PROGRAM" --dry-run "$@"`,
		"helm": `[ "$1" = install ] && shift && exec "$HELM_PROGRAM" template "$@"`,
		"git":  `case "$*" in *--dirty*) echo v1.0.0-dirty ;; *) echo v1.0.0 ;; esac`,
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	make, err := exec.LookPath("make")
	must.Succeed(t, err)
	shell := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", block)
	shell.Dir = project
	shell.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "MAKE_PROGRAM="+make, "HELM_PROGRAM="+tool.Program)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, block, out)
	}
	return string(out)
}
