// Package version describes the build of a program.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Version, Commit and Date are set by the linker in release builds.
var Version, Commit, Date string

const kubernetesModule = "k8s.io/kubernetes"

// Info describes a build.
type Info struct {
	Version string `json:"version"`
	// Commit and Date are empty if the linker did not set them.
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date,omitempty"`
	// Kubernetes is the version of the Kubernetes module, empty if the program does not use it.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Go is the version of the compiler. Platform is the target, such as linux/amd64.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Get returns a description of this build.
func Get() Info {
	build := Info{Version: Version, Commit: Commit, Date: Date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if build.Version == "" {
			build.Version = info.Main.Version
		}
		for _, module := range info.Deps {
			if module.Path == kubernetesModule {
				build.Kubernetes = module.Version
			}
		}
	}
	if build.Version == "" {
		build.Version = "(devel)"
	}
	return build
}

// String returns the version in one line, such as
// v0.1.0 (commit 1234567, 2026-11-21; Kubernetes v1.37.1).
func String() string {
	build := Get()
	var details []string
	if build.Commit != "" {
		details = append(details, fmt.Sprintf("commit %s, %s", build.Commit, build.Date))
	}
	if build.Kubernetes != "" {
		details = append(details, "Kubernetes "+build.Kubernetes)
	}
	if len(details) == 0 {
		return build.Version
	}
	return fmt.Sprintf("%s (%s)", build.Version, strings.Join(details, "; "))
}

// AddFlag adds the flag --version to a command.
func AddFlag(cmd *cobra.Command) {
	cmd.Version = String()
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	// Packages of Kubernetes register a global flag of this name, which would appear in the help of
	// all subcommands.
	if global := pflag.Lookup("version"); global != nil {
		global.Hidden = true
	}
	cmd.Flags().Bool("version", false, "print the version and exit")
}
