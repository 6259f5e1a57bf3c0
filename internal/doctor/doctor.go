// Package doctor examines a live cluster: whether all is there that Plimsoll
// needs, and whether what runs of it does what it should. It only reads. What
// could not be looked at is itself a finding.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// Level is how bad a finding is.
type Level string

// The levels. A Warning may be as it is meant; a Problem is not.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Finding is what one check found.
type Finding struct {
	// Check is its name.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Message says what was found, with names and numbers.
	Message string `json:"message"`
	// Fix says what to do; empty if nothing is to be done.
	Fix string `json:"fix,omitempty"`
}

// Cluster is what is examined.
type Cluster struct {
	kube   kubernetes.Interface
	client client.Client
	http   *http.Client
	host   string
	own    string // version of Kubernetes in the scheduler
}

// New returns a cluster to examine. Nothing is asked of it yet. The version is that
// of Kubernetes which the scheduler is built from.
func New(config *rest.Config, kubernetesVersion string) (*Cluster, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{kube: clientset, client: c, http: transport, host: address.String(), own: kubernetesVersion}, nil
}

// examination is one examination of a cluster.
type examination struct {
	*Cluster
	now      time.Time
	version  version.Info
	check    string
	findings []Finding
	// components are the Deployments of Plimsoll, and nodes those of the cluster,
	// as the first checks find them.
	components []appsv1.Deployment
	nodes      []v1.Node
	policies   []v1alpha1.ResourceSlack
}

// checks in the order in which they are made: later ones build on what earlier
// ones have read.
var checks = []struct {
	name string
	run  func(*examination, context.Context) error
}{
	{"api server", (*examination).server},
	{"clock", (*examination).clock},
	{"nodes", (*examination).readNodes},
	{"components", (*examination).readComponents},
	{"leaders", (*examination).leaders},
	{"rights", (*examination).rights},
	{"definitions", (*examination).definitions},
	{"schedulers", (*examination).schedulers},
	{"load", (*examination).load},
	{"slack", (*examination).slack},
	{"autoscaler", (*examination).autoscaler},
	{"placements", (*examination).placements},
}

// Examine makes all checks. The error is that the API server cannot be reached;
// whatever else cannot be read is a finding.
func (c *Cluster) Examine(ctx context.Context, now time.Time) ([]Finding, error) {
	x := &examination{Cluster: c, now: now}
	raw, err := c.kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("the API server at %s does not answer: %w", c.host, err)
	}
	if err := json.Unmarshal(raw, &x.version); err != nil {
		return nil, fmt.Errorf("what is at %s is no API server: %w", c.host, err)
	}
	for _, check := range checks {
		x.check = check.name
		before := len(x.findings)
		err := check.run(x, ctx)
		switch {
		case ctx.Err() != nil:
			return x.findings, ctx.Err()
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			x.add(Warning, "not looked at: "+err.Error(), "run plimsoll doctor with the rights that docs/doctor.md lists")
		case err != nil:
			x.add(Warning, "not looked at: "+err.Error(), "")
		case len(x.findings) == before:
			x.add(OK, "nothing to find fault with", "")
		}
	}
	return x.findings, nil
}

// add adds a finding of the check that is being made.
func (x *examination) add(level Level, message, fix string) {
	x.findings = append(x.findings, Finding{Check: x.check, Level: level, Message: message, Fix: fix})
}

func (x *examination) ok(format string, arguments ...any) {
	x.add(OK, fmt.Sprintf(format, arguments...), "")
}
