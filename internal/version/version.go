// Package version says which build this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Version, Commit and Date are set by the linker in release builds.
var Version, Commit, Date string

const kubernetesModule = "k8s.io/kubernetes"

// Info is what is known of a build.
type Info struct {
	Version string `json:"version"`
	// Commit and Date are absent where they were not set.
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date,omitempty"`
	// Kubernetes is the version of the Kubernetes code inside, absent where there is
	// none.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Go is that of the compiler, Platform what it was built for: linux/amd64.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Get returns what is known of this build.
func Get() Info {
	is := Info{Version: Version, Commit: Commit, Date: Date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if is.Version == "" {
			is.Version = info.Main.Version
		}
		for _, module := range info.Deps {
			if module.Path == kubernetesModule {
				is.Kubernetes = module.Version
			}
		}
	}
	if is.Version == "" {
		is.Version = "(devel)"
	}
	return is
}

// String returns the version in one line, with that of the Kubernetes code
// inside, if there is any: v0.1.0 (commit 1234567, 2026-11-21; Kubernetes v1.37.1).
func String() string {
	is := Get()
	var details []string
	if is.Commit != "" {
		details = append(details, fmt.Sprintf("commit %s, %s", is.Commit, is.Date))
	}
	if is.Kubernetes != "" {
		details = append(details, "Kubernetes "+is.Kubernetes)
	}
	if len(details) == 0 {
		return is.Version
	}
	return fmt.Sprintf("%s (%s)", is.Version, strings.Join(details, "; "))
}
