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
		"plain":          strings.Replace(kubeconfig, "https://a.", "http://a.", 1),
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
			"config", Access{Context: "three"}, "", "", `--context: invalid value "three": must be one of one, two (in config)`,
		},
		"a context without a kubeconfig": {
			"no-contexts", Access{Context: "three"}, "", "", `--context: invalid value "three": found no contexts in no-contexts`,
		},
		"an unknown current context": {
			"unknown", Access{}, "", "", `current-context: invalid value "zz" in unknown: --context must be one of one, two`,
		},
		"a context without a cluster": {
			"no-cluster",
			Access{},
			"", "",
			`context "one" in no-cluster has no cluster with a server: must be one of clusters, in the field cluster`,
		},
		"a certificate that is not base64": {
			"not-base64", Access{}, "", "", `--kubeconfig: error loading config file "not-base64": illegal base64 data at input byte 0: ` +
				"a field that ends in -data must be base64; the same without -data takes a file",
		},
		"a certificate that is no certificate": {
			"no-certificate", Access{}, "", "", "--kubeconfig: unable to load root certificates: unable to parse bytes as PEM block: " +
				"certificates and keys must be PEM, in base64 in a field that ends in -data",
		},
		"no current context": {
			"no-current", Access{}, "", "", "--context: required: no-current has no current context; must be one of one",
		},
		"a manifest": {
			"",
			Access{Kubeconfig: "node"},
			"", "",
			`--kubeconfig: node: found kind "Node" of apiVersion "v1": must be a kubeconfig, of kind Config and apiVersion v1`,
		},
		"a page": {
			"",
			Access{Kubeconfig: "page"},
			"", "",
			"--kubeconfig: page: found no kind and apiVersion: must be a kubeconfig, of kind Config and apiVersion v1",
		},
		"nothing": {
			"none", Access{}, "", "", "--kubeconfig: found no cluster in none, and no service account of a pod: " +
				"set $KUBECONFIG or --kubeconfig to a kubeconfig file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.variable)
			config, err := tc.access.Config()
			if err != nil || tc.error != "" {
				if err == nil || err.Error() != tc.error {
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
	if want := `reading pods: Unauthorized: https://a.example.com rejects the credentials of context "one": ` +
		"check the user in the kubeconfig, or set --context"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	refused := &url.Error{Op: "Get", URL: "https://a.example.com/api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	got = (&Access{}).Explain(fmt.Errorf("reading pods: %w", refused)).Error()
	if want := "https://a.example.com does not respond: dial tcp: connection refused: check --kubeconfig and --context, and that the server " +
		"runs"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	plugin := &url.Error{Op: "Get", URL: "https://a.example.com/api", Err: errors.New("getting credentials: no plugin\n\nIt looks like")}
	got = (&Access{}).Explain(plugin).Error()
	if want := "no access to https://a.example.com: getting credentials: no plugin"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Setenv("KUBECONFIG", "plain")
	got = (&Access{}).Explain(apierrors.NewBadRequest("unknown reason")).Error()
	if want := "--kubeconfig: unknown reason: the address of the cluster is http://a.example.com: servers with TLS need https://"; got != want {
		t.Errorf("%s, want %s", got, want)
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
