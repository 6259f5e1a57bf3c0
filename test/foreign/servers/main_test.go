//go:build foreign

package servers

import (
	"os"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }
