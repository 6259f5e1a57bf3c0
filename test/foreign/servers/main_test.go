// Package servers runs the chart and the controllers together with servers and tools of other projects: Helm, kubectl, Karpenter,
// metrics-server and Prometheus.
package servers

import (
	"os"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }
