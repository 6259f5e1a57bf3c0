package emulation

import (
	"testing"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	kubecompatibility "k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/compatibility"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestFor expects the version of the API server, within the range that a scheduler of 1.37 emulates: 1.34, which is 3 versions older, to
// 1.37. Also supported is 1.38, one version newer, by the version skew policy.
func TestFor(t *testing.T) {
	for _, tc := range []struct {
		server, emulated string
		supported        bool
	}{
		{"v1.16.2", "1.34", false},
		{"v1.33.99", "1.34", false},
		{"v1.34.0-alpha.1", "1.34", true},
		{"v1.34.12", "1.34", true},
		{"1.35", "1.35", true},
		{"v1.36.4-gke.12", "1.36", true},
		{"v1.37.1+k3s1", "1.37", true},
		{"v1.38.0", "1.37", true},
		{"v1.39.0", "1.37", false},
		{"v2.1.0", "1.37", false},
		{"v0.0.0-master+$Format:%H$", "1.37", true},
	} {
		emulated, supported, err := For(tc.server)
		if err != nil || emulated.String() != tc.emulated || supported != tc.supported {
			t.Errorf(
				"%s: emulated %v, supported %v, error %v, want %s and %v", tc.server, emulated, supported, err, tc.emulated, tc.supported,
			)
		}
	}
	for _, invalid := range []string{"", "v1", "latest"} {
		if emulated, _, err := For(invalid); err == nil {
			t.Errorf("%q: %s, want an error", invalid, emulated)
		}
	}
	if Supported() != "1.34 to 1.38" {
		t.Errorf("supported are %s", Supported())
	}
}

// The range is the one that kube-scheduler's flag --emulated-version accepts.
func TestRange(t *testing.T) {
	registry := compatibility.NewComponentGlobalsRegistry()
	effective, _ := registry.ComponentGlobalsOrRegister("kube", kubecompatibility.DefaultBuildEffectiveVersion(), nil)
	want := oldest().String() + ".." + Built().String() + "(default:" + Built().String() + ")"
	if got := effective.AllowedEmulationVersionRange(); got != want {
		t.Errorf("--emulated-version accepts %s, want %s", got, want)
	}
}

func TestServerVersion(t *testing.T) {
	for _, tc := range []struct {
		info apimachineryversion.Info
		want string
	}{
		{apimachineryversion.Info{Major: "1", Minor: "32", GitVersion: "v1.32.1"}, "v1.32.1"}, // knows no emulation
		{apimachineryversion.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "37"}, "v1.37.1"},
		{apimachineryversion.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "36"}, "1.36"},
		{apimachineryversion.Info{Major: "1", Minor: "36+", GitVersion: "v1.36.1-gke.2", EmulationMajor: "1", EmulationMinor: "36"}, "1.36"},
	} {
		if got := ServerVersion(&tc.info); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.info, got, tc.want)
		}
	}
}

// TestUse expects that the version of an API server is emulated until another version is known.
func TestUse(t *testing.T) {
	t.Cleanup(func() { _ = Use(Built().String()) })
	for _, tc := range []struct{ server, want string }{
		{"v1.35.8", "1.35"}, {"", "1.35"}, {"unknown", "1.35"}, {"v1.31.2", "1.34"}, {"v1.37.1", "1.37"},
	} {
		must.Succeed(t, Use(tc.server))
		if got := utilfeature.DefaultMutableFeatureGate.EmulationVersion().String(); got != tc.want {
			t.Errorf("after %q, %s is emulated, want %s", tc.server, got, tc.want)
		}
	}
}
