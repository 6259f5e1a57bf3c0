package base

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// Cluster is the flags --kubeconfig, --context and --timeout of a command that reads a live cluster.
type Cluster struct {
	Timeout time.Duration
	access  kube.Access
}

// AddFlags adds the flags. name is the word for the cluster in help texts, such as "hub".
func (c *Cluster) AddFlags(cmd *cobra.Command, name string, timeout time.Duration) {
	c.access.AddFlags(cmd, name)
	cmd.Flags().DurationVar(&c.Timeout, "timeout", timeout, "maximum time to wait for the "+name)
}

// Config returns access to the cluster.
func (c *Cluster) Config() (*rest.Config, error) { return c.access.Config() }

// Namespace returns the namespace of the context, "default" if it has none.
func (c *Cluster) Namespace() (string, error) { return c.access.Namespace() }
