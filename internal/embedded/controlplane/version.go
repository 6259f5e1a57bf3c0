package controlplane

import (
	"fmt"
	"runtime/debug"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
)

// releaseRegistry reports the release of Kubernetes that the program is built from as the version of the
// API server. Builds of Kubernetes set it in the linker; a program that uses Kubernetes as a module reports
// v0.0.0, which charts with a kubeVersion refuse.
type releaseRegistry struct {
	compatibility.ComponentGlobalsRegistry
}

// EffectiveVersionFor implements ComponentGlobalsRegistry.
func (r releaseRegistry) EffectiveVersionFor(component string) compatibility.EffectiveVersion {
	return releaseVersion{r.ComponentGlobalsRegistry.EffectiveVersionFor(component)}
}

// releaseVersion is an effective version with the release of Kubernetes.
type releaseVersion struct{ compatibility.EffectiveVersion }

// Info implements EffectiveVersion.
func (v releaseVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	// The patch level is unknown to programs without a list of modules.
	info.GitVersion = fmt.Sprintf("v%s.%s.0", info.Major, info.Minor)
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "k8s.io/kubernetes" {
				info.GitVersion = module.Version
			}
		}
	}
	return info
}
