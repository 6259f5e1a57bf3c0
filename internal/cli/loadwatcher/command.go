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
		Long: `Read the load of a cluster's nodes from one source and serve it to schedulers
and others, in the wire format of load-watcher services:

  GET /watcher             mean and deviation of CPU and memory of all nodes
  GET /watcher?host=NAME   those of one node
  GET /watcher/health      where load is from, how old it is, what is wrong
  GET /readyz, /livez      for probes; ready is who has fresh load
  GET /metrics             for Prometheus

Load that is older than --max-age is not served.`,
		Example: `  # From metrics-server, in the cluster itself.
  load-watcher

  # From Prometheus, with a token and a private authority.
  load-watcher --provider=Prometheus --address=https://prometheus.monitoring:9090 \
    --token-file=/var/run/secrets/token --ca-file=/etc/prometheus/ca.crt

  # Over TLS, to those who show a token.
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
	flags.DurationVar(&o.pollInterval, "poll-interval", 30*time.Second, "time between two reads of the source, at least 1s")
	flags.DurationVar(&o.maxAge, "max-age", 5*time.Minute, "how old load may be and still be served, at least --poll-interval")
	flags.StringVar(&o.tlsCertFile, "tls-cert-file", "", "certificate to serve with, read anew as it changes")
	flags.StringVar(&o.tlsKeyFile, "tls-private-key-file", "", "key of that certificate")
	flags.StringVar(&o.authToken, "auth-token-file", "", "file with the bearer token that whoever asks must show, read anew as it changes (default anyone may ask)")
	for _, name := range []string{"tls-cert-file", "tls-private-key-file", "auth-token-file"} {
		_ = cmd.MarkFlagFilename(name)
	}
	version.AddFlag(cmd)
	return cmd
}

// validate says what is wrong with the flags that concern the service.
func (o *options) validate() error {
	switch {
	case o.pollInterval < time.Second:
		return fmt.Errorf("--poll-interval: found %s, want at least 1s", o.pollInterval)
	case o.maxAge < o.pollInterval:
		return fmt.Errorf("--max-age: found %s, want at least --poll-interval, %s", o.maxAge, o.pollInterval)
	case (o.tlsCertFile == "") != (o.tlsKeyFile == ""):
		return errors.New("--tls-cert-file, --tls-private-key-file: want both or none")
	case o.listen == "":
		return errors.New("--listen: want an address such as :2020")
	}
	return nil
}
