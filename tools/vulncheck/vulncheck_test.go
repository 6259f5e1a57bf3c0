// Package vulncheck tests the check for known vulnerabilities, which make vulncheck runs.
package vulncheck

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// database has an example of a vulnerability, in a module that all programs contain.
var database = map[string]string{
	"index/db.json":      `{"modified": "2026-01-01T00:00:00Z"}`,
	"index/modules.json": `[{"path": "github.com/prometheus/client_golang", "vulns": [{"id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z"}]}]`,
	"index/vulns.json":   `[{"id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z"}]`,
	"ID/GO-2026-0001.json": `{
		"schema_version": "1.3.1", "id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
		"summary": "example", "details": "example", "database_specific": {"url": "https://example.com", "review_status": "REVIEWED"},
		"affected": [{
			"package": {"name": "github.com/prometheus/client_golang", "ecosystem": "Go"},
			"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}], "ecosystem_specific": {}}]}`,
}

// run runs a command in the directory of the project.
func run(t *testing.T, command ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestRetiredModules checks that programs that are given out do not contain modules that are no longer maintained. Only
// plimsoll-demo has them: its kube-apiserver, which is the code of Kubernetes, authenticates by OpenID Connect with them, and
// the demo does not enable that.
func TestRetiredModules(t *testing.T) {
	for _, program := range []string{"load-watcher", "plimsoll", "plimsoll-controller", "plimsoll-scheduler"} {
		modules, code := run(t, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/"+program)
		if code != 0 {
			t.Fatal(modules)
		}
		for _, retired := range []string{"github.com/coreos/go-oidc", "gopkg.in/go-jose/go-jose.v2", "github.com/go-jose/go-jose/v3"} {
			if strings.Contains(modules, retired+"\n") {
				t.Errorf("%s contains %s", program, retired)
			}
		}
	}
}

// TestVulncheck checks that a vulnerable module is found. It compares the modules only, which is fast.
func TestVulncheck(t *testing.T) {
	folder := t.TempDir()
	for name, content := range database {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, code := run(t, "go", "tool", "-modfile=tools/vulncheck/go.mod", "govulncheck", "-db", "file://"+folder, "-scan", "module",
		"-C", "cmd/load-watcher")
	if code == 0 || !strings.Contains(out, "GO-2026-0001") {
		t.Errorf("exit code %d, the vulnerability is not found:\n%s", code, out)
	}
}

// TestNoDatabase checks that the check fails without a database.
func TestNoDatabase(t *testing.T) {
	out, code := run(t, "make", "vulncheck", "GOVULNDB=file://"+t.TempDir())
	if code == 0 || !strings.Contains(out, "GOVULNDB: found no index/modules.json in ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
