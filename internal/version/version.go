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
	version := Version
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		version = info.Main.Version
	}
	if version == "" {
		version = "(devel)"
	}
	build := ""
	if Commit != "" {
		build = fmt.Sprintf("commit %s, %s; ", Commit, Date)
	}
	return fmt.Sprintf("%s (%sKubernetes %s)", version, build, Kubernetes())
}

// Kubernetes returns the version of the Kubernetes code inside: v1.37.1, or
// unknown.
func Kubernetes() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == kubernetesModule {
				return module.Version
			}
		}
	}
	return "unknown"
}
