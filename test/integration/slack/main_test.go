// Package slack runs the controller of slack policies against control planes.
package slack

import (
	"os"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }
