package demo

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Installed is a cluster in which Plimsoll runs already, as somebody else has
// installed it: the scheduler, and for the slack and the fleet scenario the
// controllers and all CRDs. The scenarios take it for their own: they delete its
// nodes, and the pods in the namespace default.
type Installed struct {
	// Access may do everything in it.
	Access *rest.Config
	// Scheduler is what the scheduler is configured with. It has the profiles of
	// Profiles.
	Scheduler *internalconfig.KubeSchedulerConfiguration
	// Load changes what the scheduler reads.
	Load LoadFeed
}

// Attach makes the scenarios run in a cluster with everything installed, nothing
// of which is started or ended here. The scheduler's and the controllers' memory
// cannot be looked into then: probes tell when they have heard of everything.
func Attach(installed Installed) (*Demo, error) {
	kube, err := kubernetes.NewForConfig(installed.Access)
	if err != nil {
		return nil, err
	}
	return &Demo{
		access: installed.Access, feed: installed.Load, config: installed.Scheduler, decisions: &decisions{},
		cluster: &cluster{client: kube}, stop: func() {},
	}, nil
}

// installedHub is a hub whose placement controller is not the demo's.
func installedHub(api client.Client) *hub {
	ended := make(chan struct{})
	close(ended)
	return &hub{api: api, stop: func() {}, ended: ended}
}
