package kube

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// kubeconfig has two contexts and a current one.
const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: a, cluster: {server: "https://a.example.com"}}
- {name: b, cluster: {server: "https://b.example.com"}}
contexts:
- {name: one, context: {cluster: a, user: u, namespace: shop}}
- {name: two, context: {cluster: b, user: u}}
users:
- {name: u, user: {token: secret}}
`

// noConfiguration is the error without a cluster.
const noConfiguration = "--kubeconfig: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER " +
	"environment variable: must be a kubeconfig whose current-context, or --context, has a cluster"

// TestAccess checks the selected cluster and namespace, and the errors for missing files and contexts.
func TestAccess(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Chdir(dir)
	for name, content := range map[string]string{
		"config": kubeconfig, "no-current": "apiVersion: v1\nkind: Config\ncontexts:\n- {name: one, context: {cluster: a}}\n", "bad": "{",
		"page":           "<html>\n",
		"node":           "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n",
		"no-cluster":     strings.Replace(kubeconfig, "cluster: a,", "cluster: aa,", 1),
		"no-certificate": strings.Replace(kubeconfig, "server:", "certificate-authority-data: abcd, server:", 1),
		"not-base64":     strings.Replace(kubeconfig, "server:", "certificate-authority-data: abc, server:", 1),
		"no-contexts":    "apiVersion: v1\nkind: Config\n", "unknown": strings.Replace(kubeconfig, "current-context: one", "current-context: zz", 1),
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for name, tc := range map[string]struct {
		variable                 string
		access                   Access
		server, namespace, error string
	}{
		"current context":  {"config", Access{}, "https://a.example.com", "shop", ""},
		"another context":  {"config", Access{Context: "two"}, "https://b.example.com", "default", ""},
		"an explicit file": {"", Access{Kubeconfig: "config"}, "https://a.example.com", "shop", ""},
		"no file":          {"", Access{Kubeconfig: "none"}, "", "", "--kubeconfig: stat none: no such file or directory"},
		"an unknown context": {
			"config", Access{Context: "three"}, "", "", `--context: context "three" does not exist`,
		},
		"a context without a kubeconfig": {
			"no-contexts", Access{Context: "three"}, "", "", `--context: context "three" does not exist`,
		},
		"an unknown current context": {
			"unknown", Access{}, "", "", "--kubeconfig: invalid configuration: [context was not found for specified context: zz, cluster has no server defined]",
		},
		"a context without a cluster": {
			"no-cluster",
			Access{},
			"", "",
			noConfiguration,
		},
		"a certificate that is not base64": {
			"not-base64", Access{}, "", "", `--kubeconfig: error loading config file "not-base64": illegal base64 data at input byte 0`,
		},
		"a certificate that is no certificate": {
			"no-certificate", Access{}, "", "", "--kubeconfig: unable to load root certificates: unable to parse bytes as PEM block",
		},
		"no current context": {
			"no-current", Access{}, "", "", noConfiguration,
		},
		"a manifest": {
			"",
			Access{Kubeconfig: "node"},
			"", "",
			`--kubeconfig: error loading config file "node": no kind "Node" is registered for version "v1"`,
		},
		"a page": {
			"",
			Access{Kubeconfig: "page"},
			"", "",
			`--kubeconfig: error loading config file "page": couldn't get version/kind; json parse error: `,
		},
		"nothing": {
			"none", Access{}, "", "", noConfiguration,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.variable)
			config, err := tc.access.Config()
			if err != nil || tc.error != "" {
				if err == nil || tc.error == "" || !strings.HasPrefix(err.Error(), tc.error) {
					t.Errorf("error %v, want %s", err, tc.error)
				}
				return
			}
			if config.Host != tc.server || config.QPS != requestsPerSecond {
				t.Errorf("server %s, %v requests per second, want %s", config.Host, config.QPS, tc.server)
			}
			if namespace, err := tc.access.Namespace(); namespace != tc.namespace || err != nil {
				t.Errorf("namespace %q, %v, want %q", namespace, err, tc.namespace)
			}
		})
	}
	t.Setenv("KUBECONFIG", "config")
	got := (&Access{}).Explain(fmt.Errorf("reading pods: %w", apierrors.NewUnauthorized("Unauthorized"))).Error()
	const selected = ": --kubeconfig and --context select the server, which is https://a.example.com"
	if want := "reading pods: Unauthorized" + selected; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	refused := &url.Error{Op: "Get", URL: "https://a.example.com/api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	got = (&Access{}).Explain(fmt.Errorf("reading pods: %w", refused)).Error()
	if want := `reading pods: Get "https://a.example.com/api": dial tcp: connection refused` + selected; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	forbidden := fmt.Errorf("failed to get server groups: %w", apierrors.NewForbidden(schema.GroupResource{}, "", nil))
	if got := (&Access{}).Explain(forbidden); !errors.Is(got, forbidden) || got.Error() != forbidden.Error() {
		t.Errorf("%v, want the same error", got)
	}
	must.Succeed(t, os.WriteFile("no-user", []byte(strings.ReplaceAll(kubeconfig, ", user: u", "")), 0o600))
	got = (&Access{Kubeconfig: "no-user"}).Explain(forbidden).Error()
	const anonymous = ": no user was sent: the kubeconfig has none, or its server is not https"
	if want := forbidden.Error() + anonymous + selected; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	other := apierrors.NewBadRequest("unknown reason")
	if got := (&Access{}).Explain(other); !errors.Is(got, other) || got.Error() != other.Error() {
		t.Errorf("%v, want the same error", got)
	}
	t.Setenv("KUBECONFIG", "bad")
	if _, err := (&Access{}).Config(); err == nil {
		t.Error("no error for an invalid kubeconfig")
	}
	t.Setenv("KUBECONFIG", "none")
	if namespace, err := (&Access{}).Namespace(); namespace != "default" || err != nil {
		t.Errorf("namespace %q, %v without a kubeconfig, want default", namespace, err)
	}
}
