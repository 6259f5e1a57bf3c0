// Command ocm runs the tests of Open Cluster Management for its placement controller, as released, against Plimsoll's controller: on
// an embedded control plane with the CRDs of that release, then with the CRDs of this project. It must be started in lab.
//
// Three things of the tests are replaced: they start no control plane and no controller, and use few of their helpers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

// suite is the folder of the module with the tests, suiteModule the name of the module, and upstream the module that the tests are from.
const (
	suite       = "ocm/suite"
	suiteModule = "github.com/plimsoll-k8s/plimsoll/lab/" + suite
	upstream    = "open-cluster-management.io/ocm"
)

// replacedImports are packages that the tests import, and their replacements.
var replacedImports = strings.NewReplacer(
	upstream+"/pkg/placement/controllers", suiteModule+"/controllers",
	upstream+"/test/integration/util", suiteModule+"/util",
)

// hub is a hub to run the tests on.
type hub struct {
	name string
	// crds are patterns of files.
	crds []string
	// skip matches the tests that cannot pass; "" matches none.
	skip string
}

func main() {
	controlplane.RunIfChild()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run builds the tests and the controller, and runs the tests on each hub.
func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "ocm")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	tests, controller := filepath.Join(folder, "tests"), filepath.Join(folder, "plimsoll-controller")
	if err := buildTests(ctx, folder, tests); err != nil {
		return fmt.Errorf("building the tests: %w", err)
	}
	if err := command(ctx, "..", "go", "build", "-o", controller, "./cmd/plimsoll-controller").Run(); err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	api, err := moduleFolder(ctx, "open-cluster-management.io/api")
	if err != nil {
		return err
	}
	var failed []error
	for _, h := range []hub{
		{name: "CRDs of Open Cluster Management", crds: []string{filepath.Join(api, "cluster/v1*/0*.yaml")}},
		{
			name: "CRDs of Plimsoll", crds: []string{"../config/crd/cluster.*.yaml", "../config/crd/ocm/*.yaml"},
			skip: "MisConfigured", // this CRD rejects the invalid toleration, so that no controller sees it
		},
	} {
		fmt.Printf("== %s\n", h.name)
		if err := h.runTests(ctx, folder, tests, controller); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", h.name, err))
		}
	}
	return errors.Join(failed...)
}

// buildTests builds the tests. Their files are added to the module of the suite without being copied to it.
func buildTests(ctx context.Context, folder, program string) error {
	module, err := moduleFolder(ctx, upstream)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(module, "test/integration/placement/*_test.go"))
	if err != nil {
		return err
	}
	target, err := filepath.Abs(filepath.Join(suite, "placement"))
	if err != nil {
		return err
	}
	overlay := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "suite_test.go" { // ours uses an existing hub
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		overlay[filepath.Join(target, name)] = filepath.Join(folder, name)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(replacedImports.Replace(string(raw))), 0o600); err != nil {
			return err
		}
	}
	if len(overlay) == 0 {
		return fmt.Errorf("found no tests in %s", module)
	}
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	overlayFile := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlayFile, raw, 0o600); err != nil {
		return err
	}
	return command(ctx, suite, "go", "test", "-c", "-overlay", overlayFile, "-o", program, "./placement").Run()
}

// runTests runs the tests on a new hub with a controller.
func (h *hub) runTests(ctx context.Context, folder, tests, controller string) error {
	var manifests [][]byte
	for _, pattern := range h.crds {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			manifests = append(manifests, raw)
		}
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer cp.Stop()
	config, err := cp.Config("admin", "system:masters")
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, config, manifests...); err != nil {
		return err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := cp.WriteKubeconfig(kubeconfig, "admin", "system:masters"); err != nil {
		return err
	}
	running := exec.CommandContext(ctx, controller, "--kubeconfig="+kubeconfig, "--controllers=placement", "--adopt=all",
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	if err := running.Start(); err != nil {
		return err
	}
	defer func() {
		_ = running.Process.Kill()
		_ = running.Wait()
	}()
	run := command(ctx, ".", tests, "-test.timeout=20m", "-ginkgo.no-color", "-ginkgo.skip="+h.skip)
	run.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return run.Run()
}

// moduleFolder downloads a module in the version that the suite requires, and returns its folder.
func moduleFolder(ctx context.Context, module string) (string, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Dir, download.Stderr = suite, os.Stderr
	raw, err := download.Output()
	var answer struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(raw, &answer); err == nil {
		err = decodeErr
	}
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w %s", module, err, answer.Error)
	}
	return answer.Dir, nil
}

// command returns a command in a folder that prints to the standard output.
func command(ctx context.Context, folder, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, os.Stdout, os.Stderr
	return cmd
}
