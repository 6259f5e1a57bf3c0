package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestLicenses checks that the text has a license of every module that this test program is built from, of
// Go and of the project, and no path of this machine.
func TestLicenses(t *testing.T) {
	var out bytes.Buffer
	if err := run("../../cmd/load-watcher", &out); err != nil {
		t.Fatal(err)
	}
	modules, err := modulesOf("../../cmd/load-watcher")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 20 {
		t.Errorf("found %d modules", len(modules))
	}
	for name := range modules {
		if !strings.Contains(out.String(), "==== "+name+": ") {
			t.Errorf("no text of %s", name)
		}
	}
	for _, want := range []string{"==== Go: LICENSE", "==== github.com/plimsoll-k8s/plimsoll: LICENSE", "Apache License", "==== go.yaml.in/yaml/v2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	if home, err := os.UserHomeDir(); err != nil || strings.Contains(out.String(), home+"/") {
		t.Errorf("the text has the directory %s (%v)", home, err)
	}
}

// TestRetiredModules checks that programs that are given out do not contain modules that are no longer
// maintained. Only plimsoll-demo has them: its kube-apiserver, which is the code of Kubernetes, authenticates
// by OpenID Connect with them, and the demo does not enable that.
func TestRetiredModules(t *testing.T) {
	retired := []string{"github.com/coreos/go-oidc ", "gopkg.in/go-jose/go-jose.v2 ", "github.com/go-jose/go-jose/v3 "}
	for _, program := range []string{"load-watcher", "plimsoll", "plimsoll-controller", "plimsoll-scheduler"} {
		modules, err := modulesOf("../../cmd/" + program)
		if err != nil {
			t.Fatal(err)
		}
		for name := range modules {
			for _, prefix := range retired {
				if strings.HasPrefix(name, prefix) {
					t.Errorf("%s contains %s", program, name)
				}
			}
		}
	}
}

// TestNoLicense checks that a module without a license text is an error.
func TestNoLicense(t *testing.T) {
	m := &module{root: t.TempDir()}
	if err := m.write(&bytes.Buffer{}, "example.com/m v1"); err == nil || err.Error() != "example.com/m v1: found no license text" {
		t.Errorf("error %v", err)
	}
	if err := run("../../cmd/none", &bytes.Buffer{}); err == nil || !strings.HasPrefix(err.Error(), "go list: ") {
		t.Errorf("error %v for a program that does not exist", err)
	}
}
