// Package version says which build this is.
package version

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Version, Commit and Date are set by the linker in release builds.
var Version, Commit, Date string

const kubernetesModule = "k8s.io/kubernetes"

// String returns the version in one line, with that of the Kubernetes code
// inside, if there is any: v0.1.0 (commit 1234567, 2026-11-21; Kubernetes v1.37.1).
func String() string {
	version := Version
	var details []string
	if Commit != "" {
		details = append(details, fmt.Sprintf("commit %s, %s", Commit, Date))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, module := range info.Deps {
			if module.Path == kubernetesModule {
				details = append(details, "Kubernetes "+module.Version)
			}
		}
	}
	if version == "" {
		version = "(devel)"
	}
	if len(details) == 0 {
		return version
	}
	return fmt.Sprintf("%s (%s)", version, strings.Join(details, "; "))
}
