// Package placement runs the placement tests of Open Cluster Management on the hub of $KUBECONFIG. Its other
// files are added by lab/ocm.
package placement

import (
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1client "open-cluster-management.io/api/client/cluster/clientset/versioned"
	_ "open-cluster-management.io/ocm/pkg/placement/helpers/testing" // used by the other files
	_ "open-cluster-management.io/sdk-go/pkg/patcher"
)

// The times after which a test fails and between two checks, in seconds.
const (
	eventuallyTimeout  = 30
	eventuallyInterval = 1
)

var (
	restConfig    *rest.Config
	kubeClient    kubernetes.Interface
	clusterClient clusterv1client.Interface
)

func TestPlacement(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "placement")
}

var _ = ginkgo.BeforeSuite(func() {
	var err error
	restConfig, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	restConfig.QPS = -1
	kubeClient = kubernetes.NewForConfigOrDie(restConfig)
	clusterClient = clusterv1client.NewForConfigOrDie(restConfig)
})
