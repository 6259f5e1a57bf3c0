// Package emulation determines which minor version of Kubernetes the code of kube-scheduler emulates. The code has the features of the
// emulated version, and reads only objects that API servers of that version have (KEP-4330). Everything else is the code of its own
// version: emulation does not restore the defects of an older one.
package emulation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	baseversion "k8s.io/component-base/version"
)

// older is how many minor versions older than its own kube-scheduler can emulate.
const older = 3

// Built returns the minor version of the code of kube-scheduler.
func Built() *version.Version { return version.MustParse(baseversion.DefaultKubeBinaryVersion) }

// Supported returns the minor versions of API servers that the scheduler supports, such as 1.34 to 1.38. The last one is newer than the
// scheduler: the version skew policy of Kubernetes allows a scheduler that is one minor version older than its API server.
func Supported() string { return fmt.Sprintf("%s to %s", oldest(), newest()) }

func oldest() *version.Version { return Built().SubtractMinor(older) }

func newest() *version.Version { return Built().OffsetMinor(1) }

// For returns the minor version that the scheduler emulates for an API server: the nearest that it can. supported is false
// if the scheduler does not support API servers of this version. A development build, of version 0, has the newest features.
func For(server string) (emulated *version.Version, supported bool, err error) {
	found, err := version.ParseGeneric(server)
	if err != nil {
		return nil, false, fmt.Errorf("the version of the API server: %w", err)
	}
	minor := version.MajorMinor(found.Major(), found.Minor())
	switch {
	case found.Major() == 0:
		return Built(), true, nil
	case minor.LessThan(oldest()):
		return oldest(), false, nil
	case minor.LessThan(Built()):
		return minor, true, nil
	}
	return Built(), !newest().LessThan(minor), nil
}

// ServerVersion returns the version whose features an API server has. It is older than that of its code if the API server emulates it,
// as during an upgrade of a control plane.
func ServerVersion(info *apimachineryversion.Info) string {
	if info.EmulationMajor == "" || info.EmulationMajor == info.Major && info.EmulationMinor == info.Minor {
		return info.GitVersion
	}
	return info.EmulationMajor + "." + info.EmulationMinor
}

// Use makes the code of kube-scheduler in this process emulate the version for an API server. If the version of the API server is empty
// or unknown, the emulated version stays as it is. The emulated version is global to the process.
func Use(server string) error {
	emulated, _, err := For(server)
	if server == "" || err != nil {
		return nil //nolint:nilerr // documented
	}
	return utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(emulated)
}
