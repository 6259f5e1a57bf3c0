package flags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Errors name the flags, with their prefix.
func TestSourceErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"address": {[]string{"--load-provider=Service"}, `--load-address: required: must be a URL like http://load-watcher.kube-system:2020`},
		"type": {
			[]string{"--load-provider=Datadog"},
			`--load-provider: invalid value "Datadog": must be one of Prometheus, KubernetesMetricsServer, SignalFx, Service, File`,
		},
		"not used": {
			[]string{"--load-provider=File", "--load-address=/a", "--load-query-cpu-avg=up"},
			"--load-query-cpu-avg: not used by type File: only by Prometheus",
		},
		"two fields": {
			[]string{"--load-provider=Service", "--load-address=http://a", "--load-key-file=/key"},
			"--load-cert-file, --load-key-file: must be set together",
		},
		"rate window": {
			[]string{"--load-provider=Prometheus", "--load-address=http://a", "--load-rate-window=1ms"},
			"--load-rate-window: invalid value 1ms: must be at least 1s",
		},
		"invalid step": {
			[]string{"--load-provider=SignalFx", "--load-address=http://a", "--load-token-file=/a", "--load-step=2s"},
			"--load-step: invalid value 2s: must be one of 1s, 1m, 5m, 1h",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var f Flags
			cmd := &cobra.Command{}
			f.AddOptional(cmd, "load-")
			if f.Chosen() {
				t.Error("a source is chosen without flags")
			}
			must.Succeed(t, cmd.ParseFlags(tc.args))
			if _, err := f.Source(provider.Cluster{}); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestShortErrors expects that the errors of a command with the short flags name those that it has.
func TestShortErrors(t *testing.T) {
	for arg, want := range map[string]string{
		"--provider=SignalFx": "--load-source: tokenFile: required for SignalFx, or set the environment variable SIGNALFX_TOKEN",
		"--provider=Service":  "--address: required: must be a URL like http://load-watcher.kube-system:2020",
	} {
		var f Flags
		cmd := &cobra.Command{}
		f.AddShort(cmd)
		must.Succeed(t, cmd.ParseFlags([]string{arg}))
		if err := f.Validate(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}

// TestReadFile expects that all of a file is read, also after 1 MiB of comments, and that unknown fields are an error.
func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "source.yaml")
	for text, want := range map[string]string{
		"type: Service\naddress: http://a\n":                                            "",
		strings.Repeat("# a comment\n", 100_000) + "type: Service\naddress: http://a\n": "",
		"type: Service\naddress: http://a\nport: 80\n":                                  "unknown field \"port\"",
	} {
		must.Succeed(t, os.WriteFile(name, []byte(text), 0o600))
		config, err := ReadFile(name)
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("error %v, want %s", err, want)
		case want == "" && (err != nil || config.Type != "Service" || config.Address != "http://a"):
			t.Errorf("%d bytes: %+v, %v", len(text), config, err)
		}
	}
}

// TestStripFields checks that a node keeps the time of its creation: samples from before belong to an earlier node.
func TestStripFields(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.Now(), Annotations: map[string]string{"b": "c"}}}
	got, err := stripFields(node)
	if n := got.(*v1.Node); err != nil || !n.CreationTimestamp.Equal(&node.CreationTimestamp) || n.Annotations != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
