// Package loadwatcher is the command load-watcher, which serves the load of a cluster's nodes over
// HTTP from any source that Plimsoll can read.
package loadwatcher

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
)

const name = "load-watcher"

// options are the flags.
type options struct {
	source       flags.Flags
	listen       string
	pollInterval time.Duration
	maxAge       time.Duration
	tlsCertFile  string
	tlsKeyFile   string
	authToken    string
}

// NewCommand returns the command load-watcher.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   name,
		Short: "Serve the load of a cluster's nodes",
		Long: `Read the load of a cluster's nodes from one source and serve it to schedulers and
other clients, in the wire format of load-watcher services:

  GET /watcher             mean and deviation of CPU and memory of all nodes
  GET /watcher?host=NAME   mean and deviation of CPU and memory of one node
  GET /watcher/health      source and age of the load, and errors
  GET /readyz, /livez      probes; ready if the load is fresh
  GET /metrics             metrics for Prometheus

Load older than --max-age is not served.`,
		Example: `  # Read from metrics-server, in the cluster.
  load-watcher

  # Read from Prometheus, with a token and a private certificate authority.
  load-watcher --provider=Prometheus --address=https://prometheus.monitoring:9090 \
    --token-file=/var/run/secrets/token --ca-file=/etc/prometheus/ca.crt

  # Serve over TLS, to clients with a token.
  load-watcher --tls-cert-file=tls.crt --tls-private-key-file=tls.key --auth-token-file=token`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			klog.SetOutput(os.Stderr)
			return o.serve(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	base.ConfigureService(cmd, func(*cobra.Command) error { return o.validate() })
	o.source.Add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", ":2020", "address to serve on")
	flags.DurationVar(&o.pollInterval, "poll-interval", metricprovider.DefaultPollInterval, "time between reads of the source, at least 1s")
	flags.DurationVar(&o.maxAge, "max-age", metricprovider.DefaultMaxAge, "maximum age of load that is served, at least --poll-interval")
	flags.StringVar(&o.tlsCertFile, "tls-cert-file", "", "file with the server certificate, reloaded when it changes")
	flags.StringVar(&o.tlsKeyFile, "tls-private-key-file", "", "file with the key of that certificate")
	flags.StringVar(&o.authToken, "auth-token-file", "", "file with the bearer token that clients must send, reloaded when it "+
		"changes (default no authentication)")
	for _, name := range []string{"tls-cert-file", "tls-private-key-file", "auth-token-file"} {
		_ = cmd.MarkFlagFilename(name)
	}
	version.AddFlag(cmd)
	return cmd
}

// validate returns an error for an invalid flag of the service.
func (o *options) validate() error {
	switch {
	case o.pollInterval < time.Second:
		return base.InvalidValue("poll-interval", o.pollInterval, "at least 1s")
	case o.maxAge < o.pollInterval:
		return base.InvalidValue("max-age", o.maxAge, fmt.Sprintf("at least --poll-interval, %s", o.pollInterval))
	case (o.tlsCertFile == "") != (o.tlsKeyFile == ""):
		return errors.New("--tls-cert-file, --tls-private-key-file: must be set together")
	}
	return base.CheckAddress("listen", o.listen)
}
