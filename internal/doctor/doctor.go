// Package doctor checks a live cluster: whether it has everything that Plimsoll needs,
// and whether the components of Plimsoll work. It only reads. A check that fails to
// read is a finding.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
)

// Level is the severity of a finding.
type Level string

// The levels. A Warning may be intended, a Problem is an error. A check with the level Unmade could not read what it checks.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Unmade  Level = "not checked"
	Problem Level = "problem"
)

// Finding is a result of a check.
type Finding struct {
	// Check is the name of the check.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Message is the observation, with names and numbers.
	Message string `json:"message"`
	// Fix is the action to take, empty if none is necessary.
	Fix string `json:"fix,omitempty"`
}

// Cluster is a cluster to check.
type Cluster struct {
	// Autoscaler is the Deployment of Cluster Autoscaler or Karpenter. If it is empty, Deployments are
	// recognized by their images.
	Autoscaler types.NamespacedName

	kube   kubernetes.Interface
	client client.Client
	host   string
	// kubernetesVersion is the version of Kubernetes that the scheduler is built from.
	kubernetesVersion string
}

// New returns a cluster to check, without connecting to it. kubernetesVersion is the
// version of Kubernetes that the scheduler is built from.
func New(config *rest.Config, kubernetesVersion string) (*Cluster, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: kube.SchemeWith(fleet.InstallHub)})
	if err != nil {
		return nil, err
	}
	return &Cluster{kube: clientset, client: c, host: config.Host, kubernetesVersion: kubernetesVersion}, nil
}

// examination is the state of one call of Examine.
type examination struct {
	*Cluster
	now      time.Time
	version  version.Info
	check    string
	findings []Finding
	// components are the Deployments of Plimsoll, and unread is set if they are not known. The checks that read them, the nodes and
	// the policies keep them for later checks.
	components []appsv1.Deployment
	unread     bool
	nodes      []v1.Node
	policies   []v1alpha1.ResourceSlack
}

// checks are run in this order: later checks use objects that earlier checks have read.
var checks = []struct {
	name string
	run  func(*examination, context.Context) error
}{
	{"api server", (*examination).checkVersion},
	{"nodes", (*examination).checkNodes},
	{"components", (*examination).checkComponents},
	{"leaders", (*examination).checkLeaders},
	{"rights", (*examination).checkRights},
	{"definitions", (*examination).checkDefinitions},
	{"schedulers", (*examination).checkSchedulers},
	{"load", (*examination).checkLoad},
	{"slack", (*examination).checkSlack},
	{"autoscaler", (*examination).checkAutoscaler},
	{"placements", (*examination).checkPlacements},
}

// Examine runs all checks. It fails only if the API server cannot be reached; other
// read errors are findings.
func (c *Cluster) Examine(ctx context.Context, now time.Time) ([]Finding, error) {
	e := &examination{Cluster: c, now: now}
	raw, err := c.kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &e.version); err != nil {
		return nil, fmt.Errorf("the server at %s is not an API server: %w", c.host, err)
	}
	for _, check := range checks {
		e.check = check.name
		before := len(e.findings)
		err := check.run(e, ctx)
		switch {
		case ctx.Err() != nil:
			return e.findings, ctx.Err()
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			e.add(Unmade, err.Error(), "grant the permissions that plimsoll doctor --help lists")
		case err != nil:
			e.add(Unmade, err.Error(), "")
		case len(e.findings) == before && e.unread:
			e.add(Unmade, "the components are not known", "")
		case len(e.findings) == before && len(e.components) > 0:
			e.add(OK, "no problems found", "")
		}
	}
	return e.findings, nil
}

// add adds a finding of the current check.
func (e *examination) add(level Level, message, fix string) {
	e.findings = append(e.findings, Finding{Check: e.check, Level: level, Message: message, Fix: fix})
}

// ok adds a finding of level OK.
func (e *examination) ok(format string, arguments ...any) {
	e.add(OK, fmt.Sprintf(format, arguments...), "")
}

// absent adds a finding of level OK on an optional thing that does not exist, unless Plimsoll is not installed.
func (e *examination) absent(message string) {
	if len(e.components) > 0 {
		e.ok("%s", message)
	}
}

// checkVersion checks that the scheduler supports the version of the API server, and names the version that it emulates.
func (e *examination) checkVersion(context.Context) error {
	server := emulation.ServerVersion(&e.version)
	emulated, supported, err := emulation.For(server)
	switch {
	case err != nil:
		return err
	case !supported:
		e.add(Warning, fmt.Sprintf("the API server has version %s; plimsoll-scheduler, which is kube-scheduler %s, supports %s",
			server, e.kubernetesVersion, emulation.Supported()),
			"install the release of Plimsoll for this version, or upgrade the control plane; slack and placement are not affected")
	case emulated.LessThan(emulation.Built()):
		e.ok("Kubernetes %s; the scheduler is kube-scheduler %s and emulates %s", server, e.kubernetesVersion, emulated)
	default:
		e.ok("Kubernetes %s; the scheduler is kube-scheduler %s", server, e.kubernetesVersion)
	}
	return nil
}
