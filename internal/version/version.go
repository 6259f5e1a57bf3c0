// Package version says which build this is.
package version

import (
	"fmt"
	"runtime/debug"
)

// Version, Commit and Date are set by the linker in release builds.
var Version, Commit, Date string

const kubernetesModule = "k8s.io/kubernetes"

// String returns the version in one line, with that of the Kubernetes code
// inside: v0.1.0 (commit 1234567, 2026-11-21; Kubernetes v1.37.1).
func String() string {
	version, kubernetes := Version, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, module := range info.Deps {
			if module.Path == kubernetesModule {
				kubernetes = module.Version
			}
		}
	}
	if version == "" {
		version = "(devel)"
	}
	build := ""
	if Commit != "" {
		build = fmt.Sprintf("commit %s, %s; ", Commit, Date)
	}
	return fmt.Sprintf("%s (%sKubernetes %s)", version, build, kubernetes)
}
